// The KV blocks of one sequence, in order of position. Owns one reference to each of them:
// destroying or releasing the table gives them back. Engine thread only; the pool outlives the
// table.
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
      : pool_(other.pool_), blocks_(std::exchange(other.blocks_, {})) {}
  BlockTable& operator=(BlockTable&&) = delete;

  std::span<const BlockId> ids() const { return blocks_; }
  int32_t size() const { return static_cast<int32_t>(blocks_.size()); }
  // Blocks it lacks to hold `tokens` tokens.
  int32_t Missing(int32_t tokens) const;
  // Takes what it lacks; Missing(tokens) <= free blocks.
  void Grow(int32_t tokens);
  void Release();  // from the last block to the first, so that a chain's beginning is reused last

 private:
  BlockPool* pool_;
  std::vector<BlockId> blocks_;
};

}  // namespace quire
