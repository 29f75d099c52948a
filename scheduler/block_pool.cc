#include "scheduler/block_pool.h"

#include "absl/log/check.h"

// A block is in the free list exactly when its count is 0. The list is circular through the
// sentinel, so that unlinking from the middle (a cached block that is found again) and appending
// are the same few lines.
namespace quire {

BlockPool::BlockPool(int32_t num_blocks) {
  CHECK_GE(num_blocks, 1);
  nodes_.resize(static_cast<size_t>(num_blocks) + 1);
  nodes_[sentinel()] = {.prev = sentinel(), .next = sentinel()};
  for (int32_t i = 0; i < num_blocks; ++i) Append(i);
}

int32_t BlockPool::Index(BlockId id) const {
  const auto index = static_cast<int32_t>(id);
  CHECK(index >= 0 && index < total()) << "block " << index << " of " << total();
  return index;
}

int32_t BlockPool::ref_count(BlockId id) const { return nodes_[Index(id)].refs; }

BlockId BlockPool::Allocate() {
  CHECK_GT(num_free_, 0);
  const int32_t index = nodes_[sentinel()].next;
  Unlink(index);
  nodes_[index].refs = 1;
  return BlockId{index};
}

void BlockPool::AddRef(BlockId id) {
  const int32_t index = Index(id);
  if (nodes_[index].refs == 0) Unlink(index);
  ++nodes_[index].refs;
}

void BlockPool::Release(BlockId id) {
  const int32_t index = Index(id);
  CHECK_GT(nodes_[index].refs, 0) << "block " << index << " freed twice";
  if (--nodes_[index].refs == 0) Append(index);
}

void BlockPool::Unlink(int32_t index) {
  Node& node = nodes_[index];
  nodes_[node.prev].next = node.next;
  nodes_[node.next].prev = node.prev;
  --num_free_;
}

void BlockPool::Append(int32_t index) {
  Node& end = nodes_[sentinel()];
  nodes_[index] = {.prev = end.prev, .next = sentinel(), .refs = 0};
  nodes_[end.prev].next = index;
  end.prev = index;
  ++num_free_;
}

void BlockPool::CheckInvariants() const {
  int32_t listed = 0;
  for (int32_t i = nodes_[sentinel()].next; i != sentinel(); i = nodes_[i].next) {
    CHECK_EQ(nodes_[i].refs, 0) << "held block " << i << " is in the free list";
    CHECK_EQ(nodes_[nodes_[i].next].prev, i);
    CHECK_LT(listed++, total()) << "the free list has a cycle";
  }
  CHECK_EQ(listed, num_free_);
  int32_t held = 0;
  for (int32_t i = 0; i < total(); ++i) {
    CHECK_GE(nodes_[i].refs, 0);
    held += nodes_[i].refs > 0;
  }
  CHECK_EQ(held + num_free_, total());
}

}  // namespace quire
