// What an engine step costs: seconds as a linear function of the step's shape, with coefficients
// that `quire bench --fit-cost` measures. The shape is read from the StepBatch itself, the same way
// when a step is measured and when it is simulated. Plain values; a ShapeReader has one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/step_batch.h"

namespace quire {

struct BatchShape {
  int32_t rows = 0, sequences = 0, draws = 0;  // draws: logits rows
  int64_t decode_kv = 0;                       // tokens seen by one-row sequences, summed
  int64_t decode_kv_read = 0;  // of these, leading chunks that several of them share counted once
  int64_t prefill_kv = 0;      // tokens seen by the last row of longer chunks, summed
  int64_t prefill_pairs = 0;   // (row, seen token) pairs of these
};

// Rows are priced piece by piece, since a kernel that has to read its weights anyway multiplies the
// first rows for less than the later ones, and the first few cannot be shared among threads well.
enum class CostTerm : uint8_t {
  kStep,        // 1
  kRowsTo4,     // rows up to 4
  kRowsTo16,    // rows 5..16
  kRowsTo64,    // rows 17..64
  kRowsBeyond,  // rows 65..
  kSequences,
  kDrawStep,  // 1 if anything is drawn: the output matrix is read
  kDraws,
  kDecodeKv,
  kDecodeKvRead,
  kPrefillKv,
  kPrefillPairs,
};
inline constexpr std::array<std::string_view, 12> kCostTermNames = {
    "step",      "rows_to_4", "rows_to_16", "rows_to_64",     "rows_beyond", "sequences",
    "draw_step", "draws",     "decode_kv",  "decode_kv_read", "prefill_kv",  "prefill_pairs"};

using CostTerms = std::array<double, kCostTermNames.size()>;

CostTerms TermsOf(const BatchShape& shape);

struct CostModel {
  CostTerms seconds{};  // per unit of each term, >= 0

  double Seconds(const BatchShape& shape) const;
};

class ShapeReader {
 public:
  explicit ShapeReader(int32_t num_blocks) : seen_(static_cast<size_t>(num_blocks)) {}

  BatchShape Read(const StepBatch& batch);

 private:
  int64_t SharedTokens(const StepBatch& batch, const SeqSpan& seq);

  std::vector<uint32_t> seen_;  // [num_blocks], the last batch in which a block ended a chunk
  uint32_t batch_number_ = 0;
};

}  // namespace quire
