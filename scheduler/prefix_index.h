// What the blocks hold that can be found again: a tree with one node per block. A node is its
// parent's tokens, then 1..64 of its own, in one cache scope; only a full node (64) has children. A
// hash, seeded per process, finds full nodes, and every hit is confirmed by comparing parent, scope
// and tokens: a collision costs time, never a wrong block. All storage is made at construction.
// Tells the pool which blocks are findable. Engine thread only; the pool outlives it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/ids.h"
#include "scheduler/block_pool.h"
#include "scheduler/request.h"

namespace quire {

// All that must agree, beside the tokens, for one sequence to use what another computed.
struct CacheScope {
  CacheDomain domain;
  KvPolicy kv;
  friend bool operator==(const CacheScope&, const CacheScope&) = default;
};

struct PrefixIndexOptions {
  uint64_t seed = 0;
  int32_t hash_bits = 64;  // fewer only in tests, to force collisions
};

struct PrefixMatch {
  std::span<const BlockId> full;     // whole blocks of the prefix; in the caller's storage
  BlockId partial = BlockId::kNone;  // then a block whose leading tokens are the next ones
  int32_t partial_tokens = 0;        // 1..63 of them, or 0

  int32_t tokens() const {
    return static_cast<int32_t>(full.size()) * kBlockTokens + partial_tokens;
  }
};

class PrefixIndex {
 public:
  PrefixIndex(BlockPool& pool, const PrefixIndexOptions& options);

  // The longest known beginning of `tokens`, all of them included. Among the nodes that share only
  // a part of a block the longest of the last kScan published is taken. `storage` has room for
  // tokens.size() / 64 blocks.
  PrefixMatch Find(const CacheScope& scope, std::span<const TokenId> tokens,
                   std::span<BlockId> storage) const;
  // Makes `block` findable as what follows `parent` (kNone: the beginning of a sequence): `tokens`,
  // 1..64. If another block is known as the same, it stays the one that is found. Returns the block
  // to be found now: `block`, the other, or kNone if a longer node covers the tokens.
  BlockId Publish(BlockId parent, const CacheScope& scope, std::span<const TokenId> tokens,
                  BlockId block);
  // Takes a block and all that follows it out of the index; nothing if it is not in it.
  void Withdraw(BlockId block);

  int32_t size() const { return size_; }
  bool contains(BlockId block) const { return node(block).count > 0; }
  BlockId parent(BlockId block) const { return BlockId{node(block).parent}; }
  const CacheScope& scope(BlockId block) const { return node(block).scope; }
  std::span<const TokenId> tokens(BlockId block) const;  // empty if it is not in the index

  absl::Status Audit() const;    // INTERNAL: what does not balance
  void CheckInvariants() const;  // dies of it

  static constexpr int32_t kScan = 128;

 private:
  static constexpr int32_t kNil = -1;
  struct Node {
    uint64_t hash = 0;      // of a full node
    int32_t count = 0;      // tokens; 0: not in the index
    int32_t parent = kNil;  // kNil: the beginning of a sequence
    int32_t first_child = kNil;
    int32_t prev_sibling = kNil, next_sibling = kNil;  // latest first
    int32_t next_in_bucket = kNil;                     // of a full node
    CacheScope scope;
  };
  const Node& node(BlockId block) const { return nodes_[static_cast<size_t>(block)]; }
  std::span<const TokenId> TokensOf(int32_t index) const;
  uint64_t Hash(int32_t parent, const CacheScope& scope, std::span<const TokenId> tokens) const;
  int32_t& Bucket(uint64_t hash) { return buckets_[hash & mask_]; }
  int32_t FindFull(int32_t parent, const CacheScope& scope, std::span<const TokenId> tokens) const;
  std::pair<int32_t, int32_t> FindPartial(int32_t parent, const CacheScope& scope,
                                          std::span<const TokenId> tokens) const;
  size_t RootOf(const CacheScope& scope) const;
  int32_t& FirstChild(int32_t parent, const CacheScope& scope);
  void Unlink(int32_t index);

  BlockPool& pool_;
  const PrefixIndexOptions options_;
  uint64_t mask_;                 // of both hash tables, whose sizes are a power of two
  std::vector<Node> nodes_;       // [blocks]
  std::vector<TokenId> tokens_;   // [blocks, 64]
  std::vector<int32_t> buckets_;  // full nodes by hash
  std::vector<int32_t> roots_;    // nodes without a parent, by scope
  int32_t size_ = 0;
};

}  // namespace quire
