// Who holds which KV block: ids, reference counts, and two lists of what nobody holds: free blocks,
// and cached ones, which can still be found by their content, in order of last use. A block is
// held, cached or free. Knows no memory, no content and no sequence. Engine thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/ids.h"

namespace quire {

class BlockPool {
 public:
  explicit BlockPool(int32_t num_blocks);

  int32_t total() const { return static_cast<int32_t>(nodes_.size()) - 2; }
  int32_t num_free() const { return num_free_; }
  int32_t num_cached() const { return num_cached_; }
  int32_t num_available() const { return num_free_ + num_cached_; }  // held by nobody
  int32_t num_used() const { return total() - num_available(); }
  int32_t ref_count(BlockId id) const { return nodes_[Index(id)].refs; }
  bool findable(BlockId id) const { return nodes_[Index(id)].findable; }

  BlockId Allocate();        // the least recently freed block, with one holder; num_free() >= 1
  void AddRef(BlockId id);   // one holder more; takes an unheld block out of its list
  void Release(BlockId id);  // one holder less; the last one makes it free, or cached if findable
  // Whether its content can be found; decides the list of an unheld block. For the prefix index.
  void SetFindable(BlockId id, bool findable);
  // The cached block that was used least recently; num_cached() >= 1.
  BlockId OldestCached() const;

  absl::Status Audit() const;    // INTERNAL: what does not balance
  void CheckInvariants() const;  // dies of it

 private:
  struct Node {  // prev and next link one of two circular lists through its sentinel
    int32_t prev = 0, next = 0;
    int32_t refs = 0;
    bool findable = false;
  };
  int32_t Index(BlockId id) const;
  int32_t free_list() const { return total(); }
  int32_t cached_list() const { return total() + 1; }
  void Unlink(int32_t index);
  void Append(int32_t index);
  absl::Status AuditList(int32_t sentinel, bool findable, int32_t counted) const;

  std::vector<Node> nodes_;  // of the blocks, then the two sentinels
  int32_t num_free_ = 0, num_cached_ = 0;
};

}  // namespace quire
