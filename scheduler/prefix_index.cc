#include "scheduler/prefix_index.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/log/check.h"
#include "runtime/base/status_macros.h"
#include "scheduler/audit.h"

namespace quire {
namespace {

uint64_t Fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// A step of the hash; keyed, since each word meets a state that the seed has gone into.
uint64_t Add(uint64_t state, uint64_t word) {
  return Fold(state ^ word ^ 0x9e3779b97f4a7c15u, 0xa0761d6478bd642fu) + state;
}

uint64_t Add(uint64_t state, const CacheScope& scope) {
  state = Add(Add(state, scope.domain.hi), scope.domain.lo);
  return Add(state, static_cast<uint64_t>(scope.kv.window_tokens) << 32 |
                        static_cast<uint32_t>(scope.kv.sink_tokens));
}

int32_t CommonLength(std::span<const TokenId> a, std::span<const TokenId> b) {
  const size_t most = std::min(a.size(), b.size());
  const auto ends = std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(most), b.begin());
  return static_cast<int32_t>(ends.first - a.begin());
}

}  // namespace

PrefixIndex::PrefixIndex(BlockPool& pool, const PrefixIndexOptions& options)
    : pool_(pool), options_(options) {
  CHECK(options.hash_bits >= 1 && options.hash_bits <= 64);
  const auto blocks = static_cast<size_t>(pool.total());
  const size_t buckets = std::bit_ceil(2 * blocks);
  mask_ = buckets - 1;
  nodes_.resize(blocks);
  tokens_.resize(blocks * kBlockTokens);
  buckets_.assign(buckets, kNil);
  roots_.assign(buckets, kNil);
}

std::span<const TokenId> PrefixIndex::TokensOf(int32_t index) const {
  return std::span<const TokenId>(tokens_).subspan(
      static_cast<size_t>(index) * kBlockTokens,
      static_cast<size_t>(nodes_[static_cast<size_t>(index)].count));
}

std::span<const TokenId> PrefixIndex::tokens(BlockId block) const {
  return TokensOf(static_cast<int32_t>(block));
}

uint64_t PrefixIndex::Hash(int32_t parent, const CacheScope& scope,
                           std::span<const TokenId> tokens) const {
  uint64_t hash = Add(Add(options_.seed, static_cast<uint64_t>(parent)), scope);
  for (size_t i = 0; i + 1 < tokens.size(); i += 2) {
    hash = Add(hash, static_cast<uint64_t>(tokens[i]) << 32 | static_cast<uint32_t>(tokens[i + 1]));
  }
  return Fold(hash, 0xe7037ed1a0b428dbu) >> (64 - options_.hash_bits);
}

size_t PrefixIndex::RootOf(const CacheScope& scope) const {
  return Fold(Add(options_.seed, scope), 0x8ebc6af09c88c6e3u) & mask_;
}

int32_t& PrefixIndex::FirstChild(int32_t parent, const CacheScope& scope) {
  return parent == kNil ? roots_[RootOf(scope)] : nodes_[static_cast<size_t>(parent)].first_child;
}

int32_t PrefixIndex::FindFull(int32_t parent, const CacheScope& scope,
                              std::span<const TokenId> tokens) const {
  const uint64_t hash = Hash(parent, scope, tokens);
  for (int32_t i = buckets_[hash & mask_]; i != kNil;
       i = nodes_[static_cast<size_t>(i)].next_in_bucket) {
    const Node& node = nodes_[static_cast<size_t>(i)];
    if (node.hash == hash && node.parent == parent && node.scope == scope &&
        std::ranges::equal(TokensOf(i), tokens)) {
      return i;
    }
  }
  return kNil;
}

// The child that shares most of `tokens` (at most 63 of them), and how many.
std::pair<int32_t, int32_t> PrefixIndex::FindPartial(int32_t parent, const CacheScope& scope,
                                                     std::span<const TokenId> tokens) const {
  std::pair<int32_t, int32_t> best{kNil, 0};
  if (tokens.empty()) return best;
  int32_t child = const_cast<PrefixIndex*>(this)->FirstChild(parent, scope);
  for (int32_t left = kScan; child != kNil && left > 0; --left) {
    const Node& node = nodes_[static_cast<size_t>(child)];
    if (node.scope == scope) {
      const int32_t common = CommonLength(TokensOf(child), tokens);
      if (common > best.second) best = {child, common};
    }
    child = node.next_sibling;
  }
  return best;
}

PrefixMatch PrefixIndex::Find(const CacheScope& scope, std::span<const TokenId> tokens,
                              std::span<BlockId> storage) const {
  size_t found = 0;
  int32_t parent = kNil;
  std::span<const TokenId> rest = tokens;
  while (rest.size() >= kBlockTokens) {
    const int32_t next = FindFull(parent, scope, rest.first(kBlockTokens));
    if (next == kNil) break;
    storage[found++] = BlockId{next};
    parent = next;
    rest = rest.subspan(kBlockTokens);
  }
  const size_t most = std::min<size_t>(rest.size(), kBlockTokens - 1);
  const auto [partial, shared] = FindPartial(parent, scope, rest.first(most));
  return {.full = storage.first(found), .partial = BlockId{partial}, .partial_tokens = shared};
}

BlockId PrefixIndex::Publish(BlockId parent, const CacheScope& scope,
                             std::span<const TokenId> tokens, BlockId block) {
  const auto above = static_cast<int32_t>(parent), index = static_cast<int32_t>(block);
  CHECK(!tokens.empty() && tokens.size() <= kBlockTokens);
  CHECK(above == kNil || node(parent).count == kBlockTokens) << "only full blocks have children";
  CHECK_EQ(node(block).count, 0) << "block " << index << " is published twice";
  const bool full = tokens.size() == kBlockTokens;
  if (full) {
    if (const int32_t same = FindFull(above, scope, tokens); same != kNil) return BlockId{same};
  } else if (FindPartial(above, scope, tokens).second == static_cast<int32_t>(tokens.size())) {
    return BlockId::kNone;
  }
  Node& added = nodes_[static_cast<size_t>(index)];
  int32_t& first = FirstChild(above, scope);
  added = {.count = static_cast<int32_t>(tokens.size()),
           .parent = above,
           .next_sibling = first,
           .scope = scope};
  if (first != kNil) nodes_[static_cast<size_t>(first)].prev_sibling = index;
  first = index;
  std::ranges::copy(tokens, tokens_.begin() + static_cast<ptrdiff_t>(index) * kBlockTokens);
  if (full) {
    added.hash = Hash(above, scope, tokens);
    added.next_in_bucket = std::exchange(Bucket(added.hash), index);
  }
  ++size_;
  pool_.SetFindable(block, true);
  return block;
}

// Without children.
void PrefixIndex::Unlink(int32_t index) {
  Node& node = nodes_[static_cast<size_t>(index)];
  if (node.count == kBlockTokens) {
    int32_t* link = &Bucket(node.hash);
    while (*link != index) link = &nodes_[static_cast<size_t>(*link)].next_in_bucket;
    *link = node.next_in_bucket;
  }
  if (node.prev_sibling == kNil) {
    FirstChild(node.parent, node.scope) = node.next_sibling;
  } else {
    nodes_[static_cast<size_t>(node.prev_sibling)].next_sibling = node.next_sibling;
  }
  if (node.next_sibling != kNil) {
    nodes_[static_cast<size_t>(node.next_sibling)].prev_sibling = node.prev_sibling;
  }
  node = {};
  --size_;
  pool_.SetFindable(BlockId{index}, false);
}

// Down to a leaf and up again: a walk without a stack.
void PrefixIndex::Withdraw(BlockId block) {
  const auto top = static_cast<int32_t>(block);
  if (node(block).count == 0) return;
  for (int32_t index = top;;) {
    const Node& node = nodes_[static_cast<size_t>(index)];
    if (node.first_child != kNil) {
      index = node.first_child;
      continue;
    }
    const int32_t parent = node.parent;
    Unlink(index);
    if (index == top) return;
    index = parent;
  }
}

absl::Status PrefixIndex::Audit() const {
  int32_t count = 0, listed = 0, hashed = 0, full = 0;
  const auto audit_list = [&](int32_t first, int32_t parent) -> absl::Status {
    int32_t previous = kNil;
    for (int32_t i = first; i != kNil; i = nodes_[static_cast<size_t>(i)].next_sibling) {
      AUDIT(nodes_[static_cast<size_t>(i)].parent == parent, "node ", i);
      AUDIT(nodes_[static_cast<size_t>(i)].prev_sibling == std::exchange(previous, i), "node ", i);
      AUDIT(listed++ < pool_.total(), "a list of siblings has a cycle");
    }
    return absl::OkStatus();
  };
  for (int32_t i = 0; i < pool_.total(); ++i) {
    const Node& node = nodes_[static_cast<size_t>(i)];
    AUDIT(pool_.findable(BlockId{i}) == (node.count > 0), "block ", i);
    if (node.count == 0) continue;
    ++count;
    if (node.parent != kNil) {
      const Node& parent = nodes_[static_cast<size_t>(node.parent)];
      AUDIT(parent.count == kBlockTokens, "node ", i, " follows what is not full, or gone");
      AUDIT(parent.scope == node.scope, "node ", i, " follows one of another scope");
    }
    AUDIT(node.first_child == kNil || node.count == kBlockTokens, "node ", i);
    RETURN_IF_ERROR(audit_list(node.first_child, i));
    if (node.count < kBlockTokens) continue;
    ++full;
    AUDIT(node.hash == Hash(node.parent, node.scope, TokensOf(i)), "node ", i);
    AUDIT(FindFull(node.parent, node.scope, TokensOf(i)) == i, i, " is not found, or known twice");
  }
  for (const int32_t root : roots_) RETURN_IF_ERROR(audit_list(root, kNil));
  for (int32_t i : buckets_) {
    for (; i != kNil; i = nodes_[static_cast<size_t>(i)].next_in_bucket) ++hashed;
  }
  AUDIT(count == size_, count, " nodes, counted ", size_);
  AUDIT(listed == size_, "a node that its parent does not know");
  AUDIT(hashed == full, hashed, " in buckets, full ", full);
  return absl::OkStatus();
}

void PrefixIndex::CheckInvariants() const { CHECK_OK(Audit()); }

}  // namespace quire
