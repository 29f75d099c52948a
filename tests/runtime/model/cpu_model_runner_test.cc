#include "runtime/model/cpu_model_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/runtime/model/runner_fixture.h"
#include "tests/testing/count_allocations.h"

namespace quire {
namespace {

using Rows = TestRunner::Rows;

// Overwrites one row of the embedding with NaN: F32 panels are [cols][16].
void PoisonEmbedding(TinyModel& model, TokenId token) {
  const PackedMatrix& m = model.weights.embedding;
  ASSERT_EQ(m.type, DType::kF32);
  const int32_t row = static_cast<int32_t>(token);
  float* panel = reinterpret_cast<float*>(const_cast<std::byte*>(m.panel(row / kPanelRows)));
  for (int32_t c = 0; c < m.cols; ++c) panel[c * kPanelRows + row % kPanelRows] = std::nanf("");
  std::vector<float> check(m.cols);
  UnpackRow(m, row, check.data());
  ASSERT_TRUE(std::isnan(check[0]));
}

TEST(CpuModelRunner, LimitsAreTheOptions) {
  const TinyModel model = MakeTinyModel({});
  WorkerPool pool({.threads = 1});
  auto runner = CpuModelRunner::Create(
      model.config, model.weights, {.num_blocks = 5, .max_rows = 7, .max_seqs = 3, .pool = &pool});
  ASSERT_TRUE(runner.ok()) << runner.status();
  const RunnerLimits limits = (*runner)->Limits();
  EXPECT_EQ(limits.num_blocks, 5);
  EXPECT_EQ(limits.max_rows, 7);
  EXPECT_EQ(limits.max_seqs, 3);
  EXPECT_EQ(limits.max_logits_rows, 3);
  EXPECT_EQ(limits.vocab_size, model.config.vocab_size);
  EXPECT_EQ(limits.context_tokens, model.config.context_tokens);
  EXPECT_GE((*runner)->kv_bytes(), 5 * CpuModelRunner::KvBlockBytes(model.config, KvDType::kBF16));
}

TEST(CpuModelRunner, RefusesMoreKvMemoryThanTheSystemHas) {
  const TinyModel model = MakeTinyModel({});
  WorkerPool pool({.threads = 1});
  auto runner =
      CpuModelRunner::Create(model.config, model.weights,
                             {.num_blocks = std::numeric_limits<int32_t>::max(), .pool = &pool});
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(CpuModelRunner, StepWithoutLogitsComputesKvOnly) {
  const TinyModel model = MakeTinyModel({});
  TestRunner whole(model, 1), parts(model, 1);
  TestSequence a(RandomTokens(model.config, 40, 1), 0), b = a;
  const Rows expected = whole.RunAlone(a, 40);

  TestBatch silent;
  silent.Add(b, 39);
  StepBatch batch = silent.Get();
  std::vector<SeqSpan> seqs(batch.seqs.begin(), batch.seqs.end());
  seqs[0].logits_count = 0;
  batch.seqs = seqs;
  batch.logits_rows = 0;
  EXPECT_TRUE(parts->Forward(batch).logits.values.empty());
  EXPECT_EQ(parts.RunAlone(b, 1).at(0), expected.back());
}

TEST(CpuModelRunner, GroupMaximaCoverTheirLogits) {
  const TinyModel model = MakeTinyModel({.vocab = 700});  // 256 + 256 + 188
  TestRunner runner(model, 2);
  TestSequence s(RandomTokens(model.config, 9, 1), 0);
  TestBatch batch;
  batch.Add(s, 9);
  const LogitsView logits = runner->Forward(batch.Get()).logits;
  ASSERT_EQ(logits.values.size(), 9u * 700);
  ASSERT_EQ(logits.group_max.size(), 9u * 3);
  for (size_t row = 0; row < 9; ++row) {
    for (size_t g = 0; g < 3; ++g) {
      const auto group =
          logits.values.subspan(row * 700 + g * kLogitGroup, std::min<size_t>(256, 700 - g * 256));
      EXPECT_EQ(logits.group_max[row * 3 + g], *std::ranges::max_element(group));
    }
  }
}

TEST(CpuModelRunner, ForwardAllocatesOnlyInsideUkernels) {
  const TinyModel model = MakeTinyModel({});
  for (int32_t threads : {1, 2}) {
    TestRunner runner(model, threads);
    TestSequence a(RandomTokens(model.config, 120, 1), 0), b(RandomTokens(model.config, 120, 2), 4);
    TestBatch first, second, third;
    first.Add(a, 100);
    second.Add(a, 1);
    second.Add(b, 90);
    third.Add(a, 1);
    third.Add(b, 1);
    (void)runner->Forward(first.Get());
    for (TestBatch* batch : {&second, &third}) {
      const StepBatch& step = batch->Get();
      const AllocationCounter allocations;
      (void)runner->Forward(step);
      EXPECT_EQ(allocations.ours(), 0) << threads << " threads";
    }
  }
}

TEST(CpuModelRunner, NanStaysInItsSequence) {
  TinyModel model = MakeTinyModel({.embedding = DType::kF32});
  TestRunner runner(model, 2);
  TestSequence clean(RandomTokens(model.config, 70, 1), 0);
  for (TokenId& t : clean.tokens) t = TokenId{static_cast<int32_t>(t) % 200};
  TestSequence alone = clean;
  const Rows expected = runner.RunAlone(alone, 70);

  // The head is tied: the logit of the poisoned token itself is NaN everywhere. Others must not be.
  const TokenId bad{250};
  PoisonEmbedding(model, bad);
  TestSequence sick(std::vector<TokenId>(70, bad), 5);
  Rows rows;
  while (clean.left() > 0) {
    TestBatch batch;
    batch.Add(sick, 1);
    batch.Add(clean, 1);
    Rows step = runner.Forward(batch);
    EXPECT_TRUE(std::isnan(step[0][0]));
    rows.push_back(std::move(step[1]));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(std::memcmp(rows[i].data(), expected[i].data(), 250 * sizeof(float)), 0)
        << "position " << i;
  }
  // A later owner of the same blocks is not reached by what was in them.
  TestSequence heir = clean;
  heir.computed = 0;
  heir.blocks = sick.blocks;
  const Rows inherited = runner.RunAlone(heir, 33);
  for (size_t i = 0; i < inherited.size(); ++i) {
    EXPECT_EQ(std::memcmp(inherited[i].data(), expected[i].data(), 250 * sizeof(float)), 0)
        << "position " << i;
  }
}

TEST(CpuModelRunner, ProfileAddsUpToTheStep) {
  const TinyModel model = MakeTinyModel({});
  TestRunner runner(model, 1);
  TestSequence s(RandomTokens(model.config, 30, 1), 0);
  StepProfile profile;
  runner->SetProfile(&profile);
  (void)runner.RunAlone(s, 10);
  runner->SetProfile(nullptr);
  EXPECT_EQ(profile.steps, 3);
  EXPECT_EQ(profile.rows, 30);
  EXPECT_EQ(profile.logits_rows, 30);
  EXPECT_GT(profile.attention_macs, 0);
  int64_t sum = 0;
  for (int64_t t : profile.ticks) sum += t;
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, profile.step_ticks);
}

}  // namespace
}  // namespace quire
