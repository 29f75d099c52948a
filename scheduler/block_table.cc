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
  for (int32_t n = Missing(tokens); n > 0; --n) {
    blocks_.push_back(pool_->Allocate());
    ++held_;
  }
}

void BlockTable::Append(BlockId id) {
  blocks_.push_back(id);
  if (id == BlockId::kNone) return;
  pool_->AddRef(id);
  ++held_;
}

void BlockTable::Share(const BlockTable& other) {
  for (BlockId id : other.ids()) Append(id);
}

void BlockTable::Replace(int32_t index, BlockId id) {
  BlockId& entry = blocks_[static_cast<size_t>(index)];
  pool_->AddRef(id);  // first, in case it is the same
  pool_->Release(entry);
  entry = id;
}

void BlockTable::ReleaseAt(int32_t index) {
  BlockId& entry = blocks_[static_cast<size_t>(index)];
  if (entry == BlockId::kNone) return;
  pool_->Release(entry);
  entry = BlockId::kNone;
  --held_;
}

void BlockTable::Release() {
  while (!blocks_.empty()) {
    ReleaseAt(size() - 1);
    blocks_.pop_back();
  }
}

}  // namespace quire
