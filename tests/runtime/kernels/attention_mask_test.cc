// Words, ranges and counts of computed masks against the definition, pair of positions by pair; the
// vector code of variants on one tile.
#include "runtime/kernels/attention_mask.h"

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/kernels/attention_ref.h"
#include "runtime/kernels/attention_variants.h"
#include "tests/runtime/kernels/attention_specs.h"
#include "tests/runtime/kernels/attention_world.h"

namespace quire {
namespace {

LayerAttention RandomLayer(std::mt19937& rng) {
  LayerAttention layer;
  const auto one_of = [&](const std::vector<int32_t>& values) {
    return values[rng() % values.size()];
  };
  layer.reach = static_cast<AttentionReach>(rng() % 3);
  layer.window = one_of({0, 0, 1, 2, 63, 64, 65, 130, 1000});
  layer.local_chunk = one_of({0, 0, 1, 50, 64, 100, 500});
  layer.sink_tokens = one_of({0, 0, 1, 4, 64, 100});
  layer.global_tokens = rng() % 2 == 0;
  return layer;
}

TEST(AttentionMask, WordsRangesAndCountsFollowTheDefinition) {
  std::mt19937 rng(3);
  const std::vector<int32_t> windows = {0, 0, 1, 63, 64, 65, 129, 1000}, sinks = {0, 1, 4, 64, 100};
  for (int32_t round = 0; round < 600; ++round) {
    AttentionSpec spec;
    spec.layers = {RandomLayer(rng)};
    const LayerAttention& layer = spec.layers[0];
    const int32_t kv_len = 1 + static_cast<int32_t>(rng() % 330);
    std::vector<uint64_t> words(BlocksFor(kv_len));
    for (int32_t i = 0; i < 3; ++i) words[rng() % words.size()] |= uint64_t{1} << (rng() % 64);
    const std::vector<SequenceFacts> facts = {
        {.prefix = static_cast<int32_t>(rng() % 400), .global_begin = 0}};
    const std::vector<SeqSpan> seqs = {{.row_begin = 0,
                                        .row_count = kv_len,
                                        .kv_len = kv_len,
                                        .table_begin = 0,
                                        .logits_begin = 0,
                                        .logits_count = 0,
                                        .window_tokens = windows[rng() % windows.size()],
                                        .sink_tokens = sinks[rng() % sinks.size()]}};
    StepBatch batch;
    batch.seqs = seqs;
    const AttentionShape shape = Shape(1, 1, 32);
    const AttentionReferenceInput reference = {.shape = shape,
                                               .spec = spec,
                                               .batch = batch,
                                               .facts = {.seqs = facts, .global_words = words}};
    const SequenceView view = {.tokens = kv_len,
                               .prefix = facts[0].prefix,
                               .globals = layer.global_tokens ? words.data() : nullptr,
                               .window_tokens = seqs[0].window_tokens,
                               .sink_tokens = seqs[0].sink_tokens};
    for (int32_t i = 0; i < kv_len; i += 1 + static_cast<int32_t>(rng() % 40)) {
      const RowView row = RowView::Make(layer, view, i);
      TileRange range = {.sink_tokens = layer.sink_tokens};
      range.Add(row);
      int64_t count = 0;
      int32_t next = range.Next(0);
      for (int32_t tile = 0; tile < BlocksFor(kv_len); ++tile) {
        const uint64_t word = row.Word(tile, layer.sink_tokens);
        for (int32_t t = 0; t < 64; ++t) {
          ASSERT_EQ(word >> t & 1, VisibleInReference(reference, 0, i, tile * 64 + t) ? 1u : 0u)
              << "round " << round << " row " << i << " token " << tile * 64 + t;
        }
        count += std::popcount(word);
        if (tile == next) {
          next = range.Next(tile + 1);
        } else {
          ASSERT_EQ(word, 0u) << "tile " << tile << " was skipped";
        }
      }
      ASSERT_EQ(row.Count(layer.sink_tokens), count);
    }
  }
}

std::vector<IsaLevel> IsasHere() {
  std::vector<IsaLevel> isas = {IsaLevel::kScalar};
  if (ActiveIsa() >= IsaLevel::kAvx2) isas.push_back(IsaLevel::kAvx2);
  if (ActiveIsa() >= IsaLevel::kAvx512) isas.push_back(IsaLevel::kAvx512);
  return isas;
}

TEST(AttentionVariantTile, TanhIsCloseEverywhere) {
  std::vector<float> x;
  for (int32_t i = 0; i < 16 * 4000; ++i) {
    const float size = std::exp2(-40.0f + 46.0f * static_cast<float>(i) / (16 * 4000));
    x.push_back(i % 2 == 0 ? size : -size);
  }
  std::vector<float> first;
  for (IsaLevel isa : IsasHere()) {
    std::vector<float> y(x.size());
    VariantTanh(isa, x.data(), static_cast<int32_t>(x.size()), y.data());
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::tanh(static_cast<double>(x[i]));
      worst = std::max(worst, std::abs(y[i] - exact) / std::abs(exact));
    }
    EXPECT_LE(worst, 4e-7) << IsaName(isa);
    if (first.empty()) first = y;
    EXPECT_TRUE(SameBits(y, first));
  }
}

TEST(AttentionVariantTile, TanhOfSpecialValues) {
  for (IsaLevel isa : IsasHere()) {
    std::vector<float> x(16, 0.0f), y(16);
    x[1] = kInf;
    x[2] = -kInf;
    x[3] = kNaN;
    x[4] = 1e30f;
    x[5] = -1e30f;
    VariantTanh(isa, x.data(), 16, y.data());
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_EQ(y[1], 1.0f);
    EXPECT_EQ(y[2], -1.0f);
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_EQ(y[4], 1.0f);
    EXPECT_EQ(y[5], -1.0f);
  }
}

TEST(AttentionVariantTile, InvisibleTokensGetWeightZeroWhateverTheyHold) {
  for (IsaLevel isa : IsasHere()) {
    const std::vector<uint64_t> seen = {0, uint64_t{1} << 63 | 1, ~uint64_t{0}};
    const std::vector<int32_t> position = {100, 101, 102};
    std::vector<float> s(3 * 64, kNaN), o(3 * 16, 0.0f), m(3, -kInf), l(3, 0.0f);
    s[64] = s[127] = 1.0f;
    std::fill_n(s.begin() + 128, 64, 2.0f);
    VariantSoftmaxFor(isa)({.s = s.data(),
                            .tokens = 3,
                            .group = 1,
                            .seen = seen.data(),
                            .position = position.data(),
                            .tile_position = 64},
                           ScoreTransform(), {m.data(), l.data(), o.data(), 16});
    std::vector<float> expected(3 * 64, 0.0f);
    expected[64] = expected[127] = 1.0f;
    std::fill_n(expected.begin() + 128, 64, 1.0f);
    EXPECT_EQ(s, expected) << IsaName(isa);
    EXPECT_EQ(l, (std::vector<float>{0.0f, 2.0f, 64.0f}));
    EXPECT_EQ(m, (std::vector<float>{-kInf, 1.0f, 2.0f}));
  }
}

}  // namespace
}  // namespace quire
