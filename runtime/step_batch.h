// The data of one engine step: flat arrays that the scheduler's BatchBuilder fills and a
// ModelRunner reads. Built and read by the engine thread; all views are valid until the next Build.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/ids.h"

namespace quire {

// Copies the leading tokens (1..63) of src to dst, all layers, K and V; the rest of dst's V is
// zeroed. src is complete before the step.
struct BlockCopy {
  BlockId src, dst;
  int32_t token_count;
};

// One sequence's share of a step. A row is one token position computed in this step.
struct SeqSpan {
  int32_t row_begin, row_count;  // 1 row = decode, more = prefill chunk; same arithmetic for all
  int32_t kv_len;                // tokens visible to the last row, this step's rows included
  int32_t table_begin;           // first of BlocksFor(kv_len) entries in StepBatch::block_ids
  int32_t logits_begin,
      logits_count;  // the last logits_count rows fill logits rows [logits_begin, +logits_count)
  // 0: a row sees all earlier tokens. Else the row at position p sees the keys max(0, p - window +
  // 1) to p and the keys below sink_tokens; table entries of blocks that no row sees are kNone.
  int32_t window_tokens = 0, sink_tokens = 0;
};

struct StepBatch {
  std::span<const TokenId> tokens;     // [rows]
  std::span<const int32_t> positions;  // [rows], 0-based place in the sequence
  std::span<const KvSlot> slots;       // [rows], pairwise distinct: one writer per slot
  std::span<const BlockId> block_ids;  // all block tables, concatenated
  std::span<const SeqSpan> seqs;       // one-row sequences first
  std::span<const BlockCopy> copies;   // executed before any row
  int32_t logits_rows = 0;             // <= RunnerLimits::max_logits_rows
};

inline constexpr int32_t kLogitGroup = 256;  // logits per entry of LogitsView::group_max

// Owned by the runner, valid until its next Forward.
struct LogitsView {
  std::span<const float>
      values;  // [logits_rows, vocab_size], row-major, before temperature and masks
  std::span<const float>
      group_max;  // [logits_rows, ceil(vocab_size / 256)]; NaN if any of the 256 logits is NaN
};

struct StepOutput {
  LogitsView logits;
};

struct RunnerLimits {
  int32_t num_blocks, vocab_size, context_tokens, max_rows, max_seqs, max_logits_rows;
};

}  // namespace quire
