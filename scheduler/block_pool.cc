#include "scheduler/block_pool.h"

#include "absl/log/check.h"

// A block is in one of the lists exactly when its count is 0. The lists are circular through their
// sentinels, so that unlinking from the middle (a cached block that is found again) and appending
// are the same few lines.
namespace quire {

BlockPool::BlockPool(int32_t num_blocks) {
  CHECK_GE(num_blocks, 1);
  nodes_.resize(static_cast<size_t>(num_blocks) + 2);
  for (int32_t list : {free_list(), cached_list()}) nodes_[list] = {.prev = list, .next = list};
  for (int32_t i = 0; i < num_blocks; ++i) Append(i);
}

int32_t BlockPool::Index(BlockId id) const {
  const auto index = static_cast<int32_t>(id);
  CHECK(index >= 0 && index < total()) << "block " << index << " of " << total();
  return index;
}

BlockId BlockPool::Allocate() {
  CHECK_GT(num_free_, 0);
  const int32_t index = nodes_[free_list()].next;
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

void BlockPool::SetFindable(BlockId id, bool findable) {
  const int32_t index = Index(id);
  Node& node = nodes_[index];
  CHECK(node.findable != findable) << "block " << index;
  if (node.refs == 0) Unlink(index);
  node.findable = findable;
  if (node.refs == 0) Append(index);
}

BlockId BlockPool::OldestCached() const {
  CHECK_GT(num_cached_, 0);
  return BlockId{nodes_[cached_list()].next};
}

void BlockPool::Unlink(int32_t index) {
  Node& node = nodes_[index];
  nodes_[node.prev].next = node.next;
  nodes_[node.next].prev = node.prev;
  --(node.findable ? num_cached_ : num_free_);
}

void BlockPool::Append(int32_t index) {
  Node& node = nodes_[index];
  const int32_t list = node.findable ? cached_list() : free_list();
  Node& end = nodes_[list];
  node.prev = end.prev;
  node.next = list;
  nodes_[end.prev].next = index;
  end.prev = index;
  ++(node.findable ? num_cached_ : num_free_);
}

int32_t BlockPool::CheckList(int32_t sentinel, bool findable) const {
  int32_t listed = 0;
  for (int32_t i = nodes_[sentinel].next; i != sentinel; i = nodes_[i].next) {
    CHECK_EQ(nodes_[i].refs, 0) << "held block " << i << " is in a list";
    CHECK_EQ(nodes_[i].findable, findable) << "block " << i << " is in the other's list";
    CHECK_EQ(nodes_[nodes_[i].next].prev, i);
    CHECK_LT(listed++, total()) << "a list has a cycle";
  }
  return listed;
}

void BlockPool::CheckInvariants() const {
  CHECK_EQ(CheckList(free_list(), false), num_free_);
  CHECK_EQ(CheckList(cached_list(), true), num_cached_);
  int32_t held = 0;
  for (int32_t i = 0; i < total(); ++i) {
    CHECK_GE(nodes_[i].refs, 0);
    held += nodes_[i].refs > 0;
  }
  CHECK_EQ(held + num_available(), total());
}

}  // namespace quire
