#include "scheduler/block_table.h"

#include <algorithm>

namespace quire {

BlockTable::BlockTable(BlockPool& pool, int32_t max_tokens) : pool_(&pool) {
  blocks_.reserve(static_cast<size_t>(BlocksFor(max_tokens)));
}

int32_t BlockTable::Missing(int32_t tokens) const {
  return std::max(0, BlocksFor(tokens) - size());
}

void BlockTable::Grow(int32_t tokens) {
  for (int32_t n = Missing(tokens); n > 0; --n) blocks_.push_back(pool_->Allocate());
}

void BlockTable::Release() {
  while (!blocks_.empty()) {
    pool_->Release(blocks_.back());
    blocks_.pop_back();
  }
}

}  // namespace quire
