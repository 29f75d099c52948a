#include "scheduler/simulate/step_cost.h"

#include <algorithm>

namespace quire {
namespace {

constexpr int32_t kChunkBlocks = 4;  // attention shares whole chunks of 256 tokens

double Between(int32_t rows, int32_t low, int32_t high) {
  return std::clamp(rows, low, high) - low;
}

}  // namespace

CostTerms TermsOf(const BatchShape& shape) {
  CostTerms terms{};
  const auto set = [&](CostTerm term, double value) { terms[static_cast<size_t>(term)] = value; };
  set(CostTerm::kStep, 1);
  set(CostTerm::kRowsTo4, Between(shape.rows, 0, 4));
  set(CostTerm::kRowsTo16, Between(shape.rows, 4, 16));
  set(CostTerm::kRowsTo64, Between(shape.rows, 16, 64));
  set(CostTerm::kRowsBeyond, Between(shape.rows, 64, INT32_MAX));
  set(CostTerm::kSequences, shape.sequences);
  set(CostTerm::kDrawStep, shape.draws > 0 ? 1 : 0);
  set(CostTerm::kDraws, shape.draws);
  set(CostTerm::kDecodeKv, static_cast<double>(shape.decode_kv));
  set(CostTerm::kDecodeKvRead, static_cast<double>(shape.decode_kv_read));
  set(CostTerm::kPrefillKv, static_cast<double>(shape.prefill_kv));
  set(CostTerm::kPrefillPairs, static_cast<double>(shape.prefill_pairs));
  return terms;
}

double CostModel::Seconds(const BatchShape& shape) const {
  const CostTerms terms = TermsOf(shape);
  double sum = 0;
  for (size_t i = 0; i < terms.size(); ++i) sum += seconds[i] * terms[i];
  return sum;
}

// Tokens of leading whole chunks that an earlier sequence of this batch has in the same blocks. A
// chunk's last block stands for all before it: blocks are only shared together with their past.
int64_t ShapeReader::SharedTokens(const StepBatch& batch, const SeqSpan& seq) {
  int64_t shared = 0;
  for (int32_t end = kChunkBlocks; end * kBlockTokens <= seq.kv_len - 1; end += kChunkBlocks) {
    const auto block =
        static_cast<int32_t>(batch.block_ids[static_cast<size_t>(seq.table_begin + end - 1)]);
    if (block < 0) continue;
    uint32_t& seen = seen_[static_cast<size_t>(block)];
    if (seen == batch_number_) shared += kChunkBlocks * kBlockTokens;
    seen = batch_number_;
  }
  return shared;
}

BatchShape ShapeReader::Read(const StepBatch& batch) {
  ++batch_number_;
  BatchShape shape;
  shape.rows = static_cast<int32_t>(batch.tokens.size());
  shape.sequences = static_cast<int32_t>(batch.seqs.size());
  shape.draws = batch.logits_rows;
  for (const SeqSpan& seq : batch.seqs) {
    const int64_t rows = seq.row_count, kv = seq.kv_len;
    if (rows == 1) {
      shape.decode_kv += kv;
      shape.decode_kv_read += kv - SharedTokens(batch, seq);
    } else {
      shape.prefill_kv += kv;
      shape.prefill_pairs += rows * kv - rows * (rows - 1) / 2;
    }
  }
  return shape;
}

}  // namespace quire
