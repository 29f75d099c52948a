// The KV blocks of one sequence, in order of position. Owns one reference to each of them:
// destroying or releasing the table gives them back. An entry whose block was given back early (a
// window has passed it) is BlockId::kNone. Engine thread only; the pool outlives the table.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "scheduler/block_pool.h"

namespace quire {

class BlockTable {
 public:
  // Holds at most max_tokens tokens, and allocates no memory after construction.
  BlockTable(BlockPool& pool, int32_t max_tokens);
  ~BlockTable() { Release(); }
  BlockTable(BlockTable&& other) noexcept
      : pool_(other.pool_), blocks_(std::exchange(other.blocks_, {})), held_(other.held_) {}
  BlockTable& operator=(BlockTable&&) = delete;

  std::span<const BlockId> ids() const { return blocks_; }
  int32_t size() const { return static_cast<int32_t>(blocks_.size()); }  // entries
  int32_t held() const { return held_; }                                 // blocks among them
  BlockId at(int32_t index) const { return blocks_[static_cast<size_t>(index)]; }
  // Entries it lacks for `tokens` tokens.
  int32_t Missing(int32_t tokens) const;
  // Takes what it lacks; Missing(tokens) <= free blocks.
  void Grow(int32_t tokens);
  // One entry more, of a block that others may hold too, or kNone.
  void Append(BlockId id);
  // All that another sequence has, in an empty table.
  void Share(const BlockTable& other);
  // Another block in place of one it holds, which is given back.
  void Replace(int32_t index, BlockId id);
  // Of one entry; of all, from the last block to the first, so that a chain's beginning is reused
  // last.
  void ReleaseAt(int32_t index);
  void Release();

 private:
  BlockPool* pool_;
  std::vector<BlockId> blocks_;
  int32_t held_ = 0;
};

}  // namespace quire
