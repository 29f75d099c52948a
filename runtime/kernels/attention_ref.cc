#include "runtime/kernels/attention_ref.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/tensor/half.h"

namespace quire {
namespace {

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

// Of a scaled type, `scale` is that of the element's token.
float Element(const KvLayout& layout, const std::byte* tile, size_t index, uint16_t scale) {
  if (layout.dtype == KvDType::kInt8)
    return static_cast<float>(static_cast<int8_t>(tile[index])) * BFloat16ToFloat(scale);
  if (layout.dtype == KvDType::kF32) {
    float value;
    std::memcpy(&value, tile + index * sizeof(value), sizeof(value));
    return value;
  }
  if (layout.dtype == KvDType::kInt16) {
    int16_t integer;
    std::memcpy(&integer, tile + index * sizeof(integer), sizeof(integer));
    return static_cast<float>(integer) * BFloat16ToFloat(scale);
  }
  uint16_t half;
  std::memcpy(&half, tile + index * sizeof(half), sizeof(half));
  return BFloat16ToFloat(half);
}

// K or V of a token and dim.
float KeyAt(const KvLayerView& kv, BlockId block, int32_t head, int32_t token, int32_t dim) {
  return Element(kv.layout, kv.KTile(block, head), kv.layout.KIndex(token, dim),
                 kv.layout.scaled() ? kv.KScales(block, head)[token] : uint16_t{0});
}
float ValueAt(const KvLayerView& kv, BlockId block, int32_t head, int32_t token, int32_t dim) {
  return Element(kv.layout, kv.VTile(block, head), kv.layout.VIndex(token, dim),
                 kv.layout.scaled() ? kv.VScales(block, head)[token] : uint16_t{0});
}

LayerAttention LayerOf(const AttentionReferenceInput& in) {
  return in.spec.layers.empty() ? LayerAttention() : in.spec.layers[in.layer];
}

SequenceFacts FactsOf(const AttentionReferenceInput& in, int32_t seq) {
  return in.facts.seqs.empty() ? SequenceFacts() : in.facts.seqs[seq];
}

bool IsGlobal(const AttentionReferenceInput& in, int32_t seq, int32_t token) {
  const int32_t begin = FactsOf(in, seq).global_begin;
  if (!LayerOf(in).global_tokens || begin < 0) return false;
  return (in.facts.global_words[begin + token / 64] >> (token % 64) & 1) != 0;
}

double Bias(const AttentionReferenceInput& in, int32_t head, int32_t i, int32_t j) {
  const LayerAttention layer = LayerOf(in);
  double bias = 0;
  if (!layer.position_bias || layer.reach == AttentionReach::kCross) return bias;
  if (!in.spec.alibi_slopes.empty())
    bias -= static_cast<double>(in.spec.alibi_slopes[head]) * std::abs(i - j);
  if (const RelativeBias& relative = in.spec.relative; !relative.values.empty()) {
    const int32_t distance = std::clamp(j - i, relative.min_distance, relative.max_distance);
    const int32_t count = relative.max_distance - relative.min_distance + 1;
    bias += relative.values[head * count + distance - relative.min_distance];
  }
  return bias;
}

// The query as the keys are stored: for integer types, the transform by its definition, so that dot
// products keep.
std::vector<double> QueryFor(const KvLayout& layout, const float* q) {
  std::vector<double> query(q, q + layout.head_dim);
  if (!layout.scaled()) return query;
  const int32_t block = layout.head_dim & -layout.head_dim;
  for (int32_t i = 0; i < layout.head_dim; ++i) {
    double sum = 0;
    for (int32_t j = i / block * block, end = j + block; j < end; ++j)
      sum += std::popcount(static_cast<uint32_t>(i & j & (block - 1))) % 2 == 0 ? q[j] : -q[j];
    query[i] = sum / block;
  }
  return query;
}

// One row and head: softmax over the visible tokens, weights of the others never touched.
void Row(const AttentionReferenceInput& in, const KvLayerView& kv, const AttentionIo& io,
         int32_t seq, int32_t row) {
  const AttentionShape& shape = in.shape;
  const SeqSpan& span = in.batch.seqs[seq];
  const bool cross = LayerOf(in).reach == AttentionReach::kCross;
  const BlockId* table = cross
                             ? in.facts.cross_block_ids.data() + FactsOf(in, seq).cross_table_begin
                             : in.batch.block_ids.data() + span.table_begin;
  const int32_t tokens = cross ? FactsOf(in, seq).cross_len : span.kv_len;
  const int32_t position = span.kv_len - span.row_count + row;
  const int32_t dim = shape.head_dim, group = shape.num_heads / shape.num_kv_heads;
  for (int32_t head = 0; head < shape.num_heads; ++head) {
    const std::vector<double> q =
        QueryFor(kv.layout, io.q + (span.row_begin + row) * io.q_stride + int64_t{head} * dim);
    std::vector<double> values(dim);
    double sum = 0, top = kMinusInf;
    std::vector<double> scores(tokens);
    for (int32_t j = 0; j < tokens; ++j) {
      if (!VisibleInReference(in, seq, position, j)) continue;
      const BlockId block = table[j / kBlockTokens];
      double dot = 0;
      for (int32_t d = 0; d < dim; ++d)
        dot += q[d] * KeyAt(kv, block, head / group, j % kBlockTokens, d);
      dot *= shape.scale;
      if (in.spec.logit_cap > 0) dot = in.spec.logit_cap * std::tanh(dot / in.spec.logit_cap);
      scores[j] = dot + Bias(in, head, position, j);
      top = std::max(top, scores[j]);
    }
    if (!in.spec.sinks.empty()) {
      const double sink = in.spec.sinks[int64_t{in.layer} * shape.num_heads + head];
      top = std::max(top, sink);
      if (sink != kMinusInf) sum = std::exp(sink - top);
    }
    for (int32_t j = 0; j < tokens; ++j) {
      if (!VisibleInReference(in, seq, position, j) || scores[j] == kMinusInf) continue;
      const BlockId block = table[j / kBlockTokens];
      const double weight = std::exp(scores[j] - top);
      sum += weight;
      for (int32_t d = 0; d < dim; ++d)
        values[d] += weight * ValueAt(kv, block, head / group, j % kBlockTokens, d);
    }
    float* out = io.out + (span.row_begin + row) * io.out_stride + int64_t{head} * dim;
    for (int32_t d = 0; d < dim; ++d)
      out[d] = sum == 0 ? 0.0f : static_cast<float>(values[d] / sum);
  }
}

}  // namespace

bool VisibleInReference(const AttentionReferenceInput& in, int32_t seq, int32_t i, int32_t j) {
  const LayerAttention layer = LayerOf(in);
  const SequenceFacts facts = FactsOf(in, seq);
  if (layer.reach == AttentionReach::kCross) return j < facts.cross_len;
  if (j >= in.batch.seqs[seq].kv_len) return false;
  const SeqSpan& span = in.batch.seqs[seq];
  if (span.window_tokens > 0 && j >= span.sink_tokens && j <= i - span.window_tokens) return false;
  const bool past = j <= i;
  if (layer.reach == AttentionReach::kCausal && !past) return false;
  if (layer.reach == AttentionReach::kPrefix && !past && j >= facts.prefix) return false;
  if (j < layer.sink_tokens) return true;
  if (IsGlobal(in, seq, i) || IsGlobal(in, seq, j)) return true;
  if (layer.window > 0 && std::abs(i - j) >= layer.window) return false;
  if (layer.local_chunk > 0 && i / layer.local_chunk != j / layer.local_chunk) return false;
  return true;
}

void AttentionReference(const AttentionReferenceInput& in, const KvLayerView& kv,
                        const AttentionIo& io) {
  for (size_t seq = 0; seq < in.batch.seqs.size(); ++seq) {
    for (int32_t row = 0; row < in.batch.seqs[seq].row_count; ++row)
      Row(in, kv, io, static_cast<int32_t>(seq), row);
  }
}

}  // namespace quire
