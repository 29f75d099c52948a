#include "runtime/kernels/attention_ref.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace quire {
namespace {

float Element(const KvLayout& layout, const std::byte* tile, size_t index) {
  if (layout.dtype == KvDType::kF32) {
    float value;
    std::memcpy(&value, tile + index * sizeof(value), sizeof(value));
    return value;
  }
  uint16_t half;
  std::memcpy(&half, tile + index * sizeof(half), sizeof(half));
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

}  // namespace

void AttentionReference(const AttentionShape& shape, const StepBatch& batch, const KvLayerView& kv,
                        const AttentionIo& io) {
  const int32_t dim = shape.head_dim, group = shape.num_heads / shape.num_kv_heads;
  for (const SeqSpan& seq : batch.seqs) {
    const BlockId* table = batch.block_ids.data() + seq.table_begin;
    for (int32_t i = 0; i < seq.row_count; ++i) {
      const int32_t visible = seq.kv_len - seq.row_count + i + 1;
      std::vector<float> weights(visible);
      for (int32_t head = 0; head < shape.num_heads; ++head) {
        const float* q = io.q + (seq.row_begin + i) * io.q_stride + int64_t{head} * dim;
        float* out = io.out + (seq.row_begin + i) * io.out_stride + int64_t{head} * dim;
        for (int32_t t = 0; t < visible; ++t) {
          const std::byte* tile = kv.KTile(table[t / kBlockTokens], head / group);
          float dot = 0;
          for (int32_t d = 0; d < dim; ++d)
            dot += q[d] * Element(kv.layout, tile, kv.layout.KIndex(t % kBlockTokens, d));
          weights[t] = dot * shape.scale;
        }
        const float top = *std::max_element(weights.begin(), weights.end());
        float sum = 0;
        for (float& weight : weights) sum += weight = std::exp(weight - top);
        for (int32_t d = 0; d < dim; ++d) {
          float value = 0;
          for (int32_t t = 0; t < visible; ++t) {
            const std::byte* tile = kv.VTile(table[t / kBlockTokens], head / group);
            value += weights[t] * Element(kv.layout, tile, kv.layout.VIndex(t % kBlockTokens, d));
          }
          out[d] = value / sum;
        }
      }
    }
  }
}

}  // namespace quire
