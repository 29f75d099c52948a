// What attention is asked to compute besides softmax(q k) v: which tokens a row sees, and what is
// added to its scores. Plain values, fixed at Create but for SequenceFacts, which a step brings
// along. Masks are computed from these, never stored.
//
// Row i (a position in its sequence) sees token j of the sequence if j < end_i and
//   lo_i <= j < hi_i,  or  j < sink_tokens,  or  j is a global token.
// `reach` decides end_i; window and local chunk narrow [0, end_i) to [lo_i, hi_i). Sequences of a
// step have lengths of their own, so padding needs no mask.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/ids.h"

namespace quire {

enum class AttentionReach : uint8_t {
  kCausal,  // end = i + 1
  kPrefix,  // end = max(i + 1, prefix): the prefix of a sequence sees itself in both directions
  kAll,     // end = all tokens of the sequence
  kCross,   // all tokens of another sequence, the encoder's, through a block table of its own
};

// Visibility in one layer. Where end goes beyond i + 1 the tokens concerned must be appended in the
// same step or before: a scheduler may not chunk them.
struct LayerAttention {
  AttentionReach reach = AttentionReach::kCausal;
  int32_t window = 0;          // > 0: only |i - j| < window
  int32_t local_chunk = 0;     // > 0: only j with j / local_chunk == i / local_chunk
  int32_t sink_tokens = 0;     // leading tokens that stay visible beside window or local chunk
  bool global_tokens = false;  // SequenceFacts::global_words: seen by all, and seeing all up to end
  bool position_bias = true;   // the spec's slopes or relative bias apply; never to kCross

  bool operator==(const LayerAttention&) const = default;
};

// bias(h, j - i) = values[h][clamp(j - i, min_distance, max_distance) - min_distance], as of T5.
struct RelativeBias {
  int32_t min_distance = 0, max_distance = 0;
  std::vector<float> values = {};  // [num_heads][max_distance - min_distance + 1]; empty: none
};

struct AttentionSpec {
  std::vector<LayerAttention> layers = {};  // [num_layers], empty: all causal
  float logit_cap = 0;                      // > 0: s = cap * tanh(s / cap), before bias and mask
  std::vector<float> sinks = {};  // [num_layers][num_heads], empty: none. A logit that takes mass
                                  // and adds no value
  std::vector<float> alibi_slopes = {};  // [num_heads], empty: none. s -= slope * |i - j|
  RelativeBias relative = {};
};

// What the spec asks to know of a sequence.
struct SequenceFacts {
  int32_t prefix = 0;             // kPrefix: leading tokens that see each other
  int32_t global_begin = -1;      // first of BlocksFor(kv_len) words in global_words, -1: none
  int32_t cross_len = 0;          // kCross: tokens of the encoder, 0: rows are zero
  int32_t cross_table_begin = 0;  // and the first of its blocks in cross_block_ids
};

struct AttentionFacts {
  std::span<const SequenceFacts> seqs = {};       // like StepBatch::seqs, empty: all default
  std::span<const uint64_t> global_words = {};    // bit j % 64 of word j / 64: token j is global
  std::span<const BlockId> cross_block_ids = {};  // encoder block tables, concatenated
};

}  // namespace quire
