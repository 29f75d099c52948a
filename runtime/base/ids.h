// Strong identifiers that every room shares: tokens, KV blocks, KV slots, requests, sequences.
// Plain values; usable from any thread; nothing owned.
#pragma once

#include <compare>
#include <cstdint>

namespace quire {

enum class TokenId : int32_t { kNone = -1 };    // index into the vocabulary
enum class BlockId : int32_t { kNone = -1 };    // index into the KV pool
enum class KvSlot : int32_t {};                 // block * kBlockTokens + offset in the block
enum class RequestId : uint64_t { kNone = 0 };  // never reused within a process

// One output of a request; a request with n outputs forks into n sequences.
struct SequenceId {
  RequestId request = RequestId::kNone;
  int32_t output_index = 0;  // < n
  friend auto operator<=>(const SequenceId&, const SequenceId&) = default;
};

inline constexpr int32_t kBlockTokens = 64;  // tokens of one KV block

// Number of blocks that hold `tokens` tokens. tokens >= 0.
constexpr int32_t BlocksFor(int32_t tokens) {
  return static_cast<int32_t>((static_cast<int64_t>(tokens) + kBlockTokens - 1) / kBlockTokens);
}

}  // namespace quire
