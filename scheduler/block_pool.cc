#include "scheduler/block_pool.h"

#include "absl/log/check.h"
#include "runtime/base/status_macros.h"
#include "scheduler/audit.h"

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

absl::Status BlockPool::AuditList(int32_t sentinel, bool findable, int32_t counted) const {
  int32_t listed = 0;
  for (int32_t i = nodes_[sentinel].next; i != sentinel; i = nodes_[i].next) {
    AUDIT(nodes_[i].refs == 0, "held block ", i, " is in a list");
    AUDIT(nodes_[i].findable == findable, "block ", i, " is in the other's list");
    AUDIT(nodes_[nodes_[i].next].prev == i, "a list is torn at ", i);
    AUDIT(listed++ < total(), "a list has a cycle");
  }
  AUDIT(listed == counted, "listed ", listed, ", counted ", counted);
  return absl::OkStatus();
}

absl::Status BlockPool::Audit() const {
  RETURN_IF_ERROR(AuditList(free_list(), false, num_free_));
  RETURN_IF_ERROR(AuditList(cached_list(), true, num_cached_));
  int32_t held = 0;
  for (int32_t i = 0; i < total(); ++i) {
    AUDIT(nodes_[i].refs >= 0, "block ", i);
    held += nodes_[i].refs > 0;
  }
  AUDIT(held + num_available() == total(), "held ", held, ", others ", num_available(), ", of ",
        total());
  return absl::OkStatus();
}

void BlockPool::CheckInvariants() const { CHECK_OK(Audit()); }

}  // namespace quire
