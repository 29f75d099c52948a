// What must not change a bit of any variant: chunking, batch mates, workers, splits, block ids,
// code paths, what invisible tokens hold; and which specs are the same thing said differently.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/runtime/kernels/attention_specs.h"
#include "tests/runtime/kernels/attention_world.h"
#include "tests/testing/count_allocations.h"

namespace quire {
namespace {

constexpr AttentionShape kShape = Shape(6, 2, 64);

// Combinations as models have them, all causal beyond the prompt.
std::vector<std::vector<Variant>> Models() {
  return {{Window(100)},
          {Window(70), SinkTokens(4)},
          {LocalChunk(96), LearnedSinks()},
          {Window(64), Globals(), SoftCap(5)},
          {Alibi()},
          {Relative(-60, 60), Window(200)},
          {LearnedSinks(), SoftCap(3)},
          {Cross(), SoftCap(2)}};
}

std::string Name(const std::vector<Variant>& variants) {
  std::string name;
  for (const Variant& variant : variants) absl::StrAppend(&name, variant.name, " ");
  return name;
}

WorldSeq Seq(int32_t id, int32_t kv_len, int32_t rows) {
  return {.id = id,
          .kv_len = kv_len,
          .rows = rows,
          .globals = kv_len > 40 ? std::vector<int32_t>{3, 40} : std::vector<int32_t>{3},
          .cross_len = 300};
}

std::vector<IsaLevel> IsasHere() {
  std::vector<IsaLevel> isas = {IsaLevel::kScalar};
  if (ActiveIsa() >= IsaLevel::kAvx2) isas.push_back(IsaLevel::kAvx2);
  if (ActiveIsa() >= IsaLevel::kAvx512) isas.push_back(IsaLevel::kAvx512);
  return isas;
}

TEST(AttentionEquality, EveryCodePathGivesTheSameBits) {
  for (const std::vector<Variant>& model : Models()) {
    for (KvDType dtype : {KvDType::kF32, KvDType::kBF16, KvDType::kInt8, KvDType::kInt16}) {
      const AttentionWorld world({.shape = kShape, .dtype = dtype, .spec = Make(model, kShape)},
                                 {Seq(1, 300, 1), Seq(2, 70, 3), Seq(3, 290, 40)});
      AttentionOptions options = world.KernelOptions();
      options.products = AttentionProducts::kSequential;
      options.isa = IsaLevel::kScalar;
      const std::vector<float> expected = world.Run(options);
      for (IsaLevel isa : IsasHere()) {
        for (AttentionProducts products : {AttentionProducts::kFastest, AttentionProducts::kUkernel,
                                           AttentionProducts::kSequential}) {
          options.isa = isa;
          options.products = products;
          EXPECT_TRUE(SameBits(world.Run(options), expected))
              << Name(model) << KvDTypeName(dtype) << " " << IsaName(isa) << " "
              << static_cast<int>(products);
        }
      }
    }
  }
}

TEST(AttentionEquality, ChunksGiveTheSameBitsAsOneShot) {
  constexpr int32_t kTokens = 530;
  for (const std::vector<Variant>& model : Models()) {
    const WorldOptions options = {.shape = kShape, .spec = Make(model, kShape)};
    const AttentionWorld whole(options, {Seq(5, kTokens, kTokens)});
    const std::vector<float> expected = whole.Run();
    for (int32_t chunk : {17, 64, 100}) {
      std::vector<float> got;
      for (int32_t begin = 0; begin < kTokens; begin += chunk) {
        const int32_t end = std::min(begin + chunk, kTokens);
        WorldSeq seq = Seq(5, end, end - begin);
        const std::vector<float> part = AttentionWorld(options, {seq}).Run();
        got.insert(got.end(), part.begin(), part.end());
      }
      EXPECT_TRUE(SameBits(got, expected)) << Name(model) << chunk;
    }
    for (int32_t row : {0, 63, 64, 99, 100, 255, 256, 400, 511, 512, 529}) {
      const std::vector<float> decoded = AttentionWorld(options, {Seq(5, row + 1, 1)}).Run();
      const auto begin = expected.begin() + row * whole.width();
      EXPECT_TRUE(SameBits(decoded, {begin, begin + whole.width()})) << Name(model) << row;
    }
  }
}

TEST(AttentionEquality, BatchMatesWorkersSplitsAndBlockIdsDoNotChangeBits) {
  for (const std::vector<Variant>& model : Models()) {
    const WorldOptions options = {.shape = kShape, .spec = Make(model, kShape)};
    const std::vector<WorldSeq> seqs = {Seq(1, 1, 1), Seq(2, 257, 1), Seq(3, 1700, 1),
                                        Seq(4, 90, 90), Seq(5, 65, 7)};
    const AttentionWorld together(options, seqs);
    const std::vector<float> expected = together.Run();
    for (int32_t i = 0; i < static_cast<int32_t>(seqs.size()); ++i) {
      EXPECT_TRUE(SameBits(together.RowsOf(expected, i), AttentionWorld(options, {seqs[i]}).Run()))
          << Name(model) << "sequence " << i;
    }
    WorldOptions shuffled = options;
    shuffled.shuffle = 9;
    const AttentionWorld elsewhere(shuffled, seqs);
    for (int32_t workers : {1, 2, 3}) {
      for (bool split : {false, true}) {
        AttentionOptions kernel = elsewhere.KernelOptions();
        kernel.workers = workers;
        kernel.split_long_items = split;
        EXPECT_TRUE(SameBits(elsewhere.Run(kernel), expected)) << Name(model) << workers << split;
      }
    }
  }
}

// Windows of sequences (SeqSpan) beside those of layers.
TEST(AttentionEquality, ASequencesOwnWindowIsThatOfALayerOfItsOwn) {
  constexpr int32_t kWindow = 150, kSinks = 5;
  const WorldOptions plain = {.shape = kShape, .spec = Make({}, kShape)};
  const WorldOptions windowed = {.shape = kShape,
                                 .spec = Make({Window(kWindow), SinkTokens(kSinks)}, kShape)};
  for (const auto& [kv_len, rows] : {std::pair(900, 1), std::pair(900, 20), std::pair(300, 300)}) {
    WorldSeq seq = Seq(1, kv_len, rows);
    const std::vector<float> expected = AttentionWorld(windowed, {seq}).Run();
    seq.window_tokens = kWindow;
    seq.sink_tokens = kSinks;
    const AttentionWorld mixed(plain, {Seq(2, 700, 1), seq, Seq(3, 90, 40)});
    const std::vector<float> out = mixed.Run();
    EXPECT_TRUE(SameBits(mixed.RowsOf(out, 1), expected)) << kv_len << " " << rows;
    EXPECT_TRUE(SameBits(mixed.RowsOf(out, 0), AttentionWorld(plain, {Seq(2, 700, 1)}).Run()));
    EXPECT_TRUE(SameBits(mixed.RowsOf(out, 2), AttentionWorld(plain, {Seq(3, 90, 40)}).Run()));
  }
}

TEST(AttentionEquality, AWindowThatHidesNothingChangesNoBit) {
  const WorldOptions options = {.shape = kShape, .spec = Make({}, kShape)};
  WorldSeq seq = Seq(1, 600, 30);
  const std::vector<float> expected = AttentionWorld(options, {seq}).Run();
  seq.window_tokens = 600;
  EXPECT_TRUE(SameBits(AttentionWorld(options, {seq}).Run(), expected));
  seq.window_tokens = 596;
  seq.sink_tokens = 4;
  EXPECT_TRUE(SameBits(AttentionWorld(options, {seq}).Run(), expected));
  seq.window_tokens = 595;
  EXPECT_FALSE(SameBits(AttentionWorld(options, {seq}).Run(), expected));
}

TEST(AttentionEquality, BlocksBehindASequencesWindowAreNotRead) {
  const WorldOptions options = {.shape = kShape, .spec = Make({}, kShape)};
  for (int32_t workers : {1, 2}) {
    WorldSeq seq = Seq(1, 900, 20);
    seq.window_tokens = 150;
    seq.sink_tokens = 5;
    AttentionWorld world(options, {seq, Seq(2, 100, 1)});
    AttentionOptions kernel = world.KernelOptions();
    kernel.workers = workers;
    const std::vector<float> expected = world.Run(kernel);
    for (int32_t block = 1; block < (900 - 20 - 150) / 64; ++block) world.LoseBlock(0, block);
    EXPECT_TRUE(SameBits(world.Run(kernel), expected)) << workers;
  }
}

// Invisible: keys outside the window hold NaN, blocks that no row sees do not exist.
TEST(AttentionEquality, WhatNoRowSeesIsNotRead) {
  constexpr int32_t kContext = 900, kRows = 20, kWindow = 150, kSinks = 5;
  const WorldOptions options = {.shape = kShape,
                                .spec = Make({Window(kWindow), SinkTokens(kSinks)}, kShape)};
  const AttentionWorld clean(options, {Seq(1, kContext, kRows)});
  WorldOptions poisoned = options;
  poisoned.fill = kNaN;
  poisoned.edit = [](int32_t, int32_t position, float*, float* k, float* v) {
    if (position < kSinks || position > kContext - kRows - kWindow) return;
    std::fill_n(k, 2 * 64, kNaN);
    if (position >= 64 && position < 640) std::fill_n(v, 2 * 64, kInf);
  };
  AttentionWorld dirty(poisoned, {Seq(1, kContext, kRows)});
  for (int32_t block = 1; block < (kContext - kRows - kWindow) / 64; ++block)
    dirty.LoseBlock(0, block);
  const std::vector<float> expected = clean.Run();
  for (int32_t workers : {1, 3}) {
    AttentionOptions kernel = dirty.KernelOptions();
    kernel.workers = workers;
    EXPECT_TRUE(SameBits(dirty.Run(kernel), expected));
  }
}

// The general mask, and biases and caps that do nothing, give the plain kernel's bits.
TEST(AttentionEquality, SpecsThatMeanTheSameGiveTheSameBits) {
  const std::vector<WorldSeq> seqs = {Seq(1, 700, 1), Seq(2, 300, 33), Seq(3, 64, 64)};
  const std::vector<float> expected = AttentionWorld({.shape = kShape}, seqs).Run();
  for (const std::vector<Variant>& model :
       std::vector<std::vector<Variant>>{{Window(700)},
                                         {LocalChunk(1000)},
                                         {Prefix()},
                                         {Window(1), SinkTokens(10000)},
                                         {Alibi(0)},
                                         {Relative(0, 0, 0)},
                                         {Relative(-900, 900, 0), SinkTokens(3)}}) {
    const AttentionWorld world({.shape = kShape, .spec = Make(model, kShape)}, seqs);
    EXPECT_TRUE(SameBits(world.Run(), expected)) << Name(model);
  }
  const AttentionSpec sinks = {.sinks = std::vector<float>(6, -kInf)};
  EXPECT_TRUE(SameBits(AttentionWorld({.shape = kShape, .spec = sinks}, seqs).Run(), expected));
}

TEST(AttentionEquality, LastTokenSeesTheSameInBothDirectionsAndAcross) {
  const WorldSeq self = {.id = 1001, .kv_len = 333, .rows = 1};
  const std::vector<float> expected = AttentionWorld({.shape = kShape}, {self}).Run();
  EXPECT_TRUE(SameBits(
      AttentionWorld({.shape = kShape, .spec = Make({Bidirectional()}, kShape)}, {self}).Run(),
      expected));
  // The encoder of sequence 1 has the data of sequence 1001.
  const auto same_queries = [](int32_t, int32_t, float* q, float*, float*) {
    for (int32_t i = 0; i < 6 * 64; ++i) q[i] = 0.1f * static_cast<float>(i % 7);
  };
  WorldOptions options = {.shape = kShape, .edit = same_queries};
  const AttentionWorld same_query(options, {self});
  options.spec = Make({Cross()}, kShape);
  const AttentionWorld cross(options, {{.id = 1, .kv_len = 5, .rows = 5, .cross_len = 333}});
  const std::vector<float> rows = cross.Run(), row = same_query.Run();
  for (int32_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(SameBits({rows.begin() + i * 384, rows.begin() + (i + 1) * 384}, row)) << i;
  }
}

// Hybrid models: layers of several kinds in one kernel are what each is alone.
TEST(AttentionEquality, LayersOfDifferentKindsShareAKernel) {
  const std::vector<WorldSeq> seqs = {Seq(1, 900, 1), Seq(2, 130, 40)};
  AttentionSpec mixed;
  mixed.layers.resize(5);
  mixed.layers[1].window = 100;
  mixed.layers[2].reach = AttentionReach::kCross;
  mixed.layers[3].window = 100;
  mixed.layers[4].local_chunk = 77;
  for (int32_t layer = 0; layer < 5; ++layer) {
    for (int32_t head = 0; head < 6; ++head)
      mixed.sinks.push_back(static_cast<float>(layer) - static_cast<float>(head) / 2);
  }
  const AttentionWorld world({.shape = kShape, .spec = mixed}, seqs);
  AttentionOptions options = world.KernelOptions();
  options.workers = 2;
  auto kernel = AttentionKernel::Create(options);
  ASSERT_TRUE(kernel.ok());
  for (int32_t step = 0; step < 2; ++step) {
    (*kernel)->Plan(world.batch(), world.facts());
    for (int32_t layer = 0; layer < 5; ++layer) {
      AttentionSpec alone;
      alone.layers = {mixed.layers[layer]};
      alone.sinks.assign(mixed.sinks.begin() + layer * 6, mixed.sinks.begin() + (layer + 1) * 6);
      EXPECT_TRUE(SameBits(world.RunWith(**kernel, 2, layer),
                           AttentionWorld({.shape = kShape, .spec = alone}, seqs).Run()))
          << "layer " << layer;
    }
  }
}

TEST(AttentionEquality, CountsOnlyWhatIsSeen) {
  const AttentionWorld world(
      {.shape = kShape, .spec = Make({Window(65), SinkTokens(3)}, kShape)},
      {{.id = 1, .kv_len = 640, .rows = 1}, {.id = 2, .kv_len = 66, .rows = 66}});
  auto kernel = AttentionKernel::Create(world.KernelOptions());
  ASSERT_TRUE(kernel.ok());
  (*kernel)->Plan(world.batch());
  const int64_t tile_bytes = 2 * 2 * 64 * 64 * 2;  // K and V, 2 heads, bf16
  EXPECT_EQ((*kernel)->planned_kv_bytes(), (1 + 2 + 2) * tile_bytes);
  EXPECT_EQ((*kernel)->planned_macs(), 2 * (65 + 3 + 65 * 66 / 2 + 66) * 6 * 64);
}

TEST(AttentionEquality, PlanAllocatesNothing) {
  AttentionSpec spec = Make({Window(100), Globals(), SinkTokens(2)}, kShape);
  const AttentionWorld world({.shape = kShape, .spec = spec},
                             {Seq(1, 3000, 1), Seq(2, 130, 40), Seq(3, 800, 200)});
  AttentionOptions options = world.KernelOptions();
  options.workers = 2;
  auto kernel = AttentionKernel::Create(options);
  ASSERT_TRUE(kernel.ok());
  const AllocationCounter counter;
  (*kernel)->Plan(world.batch(), world.facts());
  EXPECT_EQ(counter.ours(), 0);
}

}  // namespace
}  // namespace quire
