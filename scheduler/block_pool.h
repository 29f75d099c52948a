// Who holds which KV block: ids, reference counts, and the free list in order of last use (a freed
// block is reused last, so what it holds can stay findable for long). Knows no memory and no
// sequence. Engine thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/ids.h"

namespace quire {

class BlockPool {
 public:
  explicit BlockPool(int32_t num_blocks);

  int32_t total() const { return static_cast<int32_t>(nodes_.size()) - 1; }
  int32_t num_free() const { return num_free_; }
  int32_t num_used() const { return total() - num_free_; }
  int32_t ref_count(BlockId id) const;

  BlockId Allocate();        // the least recently freed block, with one holder; num_free() >= 1
  void AddRef(BlockId id);   // one holder more; takes a free block out of the free list
  void Release(BlockId id);  // one holder less; the last one puts it at the end of the free list

  void CheckInvariants() const;

 private:
  struct Node {  // prev and next link the free list through its sentinel, the last node
    int32_t prev = 0, next = 0;
    int32_t refs = 0;
  };
  int32_t Index(BlockId id) const;
  int32_t sentinel() const { return total(); }
  void Unlink(int32_t index);
  void Append(int32_t index);

  std::vector<Node> nodes_;
  int32_t num_free_ = 0;
};

}  // namespace quire
