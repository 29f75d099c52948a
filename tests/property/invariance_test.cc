// The promise: a request's tokens and logprobs are the same bits whatever runs beside it, however
// its prompt is cut, on any number of threads, in any blocks, and however often it loses them. And
// tests that break it on purpose, without which the others prove nothing.
#include "tests/property/invariance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

namespace quire {
namespace {

constexpr InvarianceModel kModels[] = {
    {"Q4OnBf16", {.linear = DType::kQ4_1}, KvDType::kBF16},
    {"Q8OnF32", {.seed = 2, .linear = DType::kQ8_0}, KvDType::kF32},
    {"F32OnBf16", {.seed = 3, .linear = DType::kF32, .embedding = DType::kF32}, KvDType::kBF16},
};

class Invariance : public testing::TestWithParam<InvarianceModel> {
 protected:
  Invariance() : world_(GetParam()) {}

  // One sequence at a time, in the largest chunks, on one thread.
  RunResult Plain(const std::vector<Request>& requests) {
    return world_.Run(requests, {.batch = 1, .step_tokens = 512});
  }
  // Runs in another shape; the bits must be those of `plain`.
  RunResult ExpectSame(const RunResult& plain, const std::vector<Request>& requests,
                       const RunShape& shape) {
    RunResult result = world_.Run(requests, shape);
    EXPECT_EQ(Digest(result.outputs), Digest(plain.outputs))
        << shape.DebugString() << ": " << FirstDifference(plain.outputs, result.outputs);
    return result;
  }

  InvarianceWorld world_;
};

TEST_P(Invariance, BatchChunkThreadsAndBlocksChangeNoBit) {
  uint64_t order = 0;
  for (const int32_t batch : {1, 2, 7, 32, 64}) {
    // Enough to fill the batch; small ones take many steps for them.
    const std::vector<Request> requests = MixedRequests(batch > 7 ? 64 : 24, world_.vocab_size());
    const RunResult plain = Plain(requests);
    for (const int32_t step_tokens : {17, 64, 512}) {
      for (const int32_t threads : {1, 2}) {
        ExpectSame(plain, requests,
                   {.batch = batch,
                    .step_tokens = step_tokens,
                    .threads = threads,
                    .block_order = order++});
        if (HasFailure()) return;
      }
    }
  }
}

// The first requests have all kinds of prompt, a long one as well; more would take many steps.
TEST_P(Invariance, ChunksOfOneTokenChangeNoBit) {
  const std::vector<Request> requests = MixedRequests(8, world_.vocab_size());
  const RunResult plain = Plain(requests);
  for (const int32_t batch : {1, 2, 7, 32, 64}) {
    for (const int32_t threads : {1, 2}) {
      ExpectSame(plain, requests,
                 {.batch = batch, .step_tokens = 1, .threads = threads, .block_order = 3});
    }
  }
}

TEST_P(Invariance, PreemptionAtAnyStepChangesNoBit) {
  const std::vector<Request> requests = MixedRequests(16, world_.vocab_size());
  const RunResult plain = Plain(requests);
  for (const RunShape shape :
       {RunShape{.batch = 7, .step_tokens = 17},
        RunShape{.batch = 32, .step_tokens = 64, .threads = 2, .block_order = 9}}) {
    const int32_t steps = ExpectSame(plain, requests, shape).steps;
    int32_t preempted_runs = 0;
    for (int32_t k = 1; k < steps && !HasFailure(); ++k) {
      RunShape preempted = shape;
      preempted.preempt_at = k;
      preempted_runs += ExpectSame(plain, requests, preempted).preemptions > 0;
    }
    EXPECT_GE(preempted_runs, steps - 2) << "at the first and the last step nobody runs";
  }
}

TEST_P(Invariance, PrefixCacheOffColdOrWarmChangesNoBit) {
  const std::vector<Request> requests = MixedRequests(48, world_.vocab_size());
  const RunResult plain =
      world_.Run(requests, {.batch = 1, .step_tokens = 512, .prefix_cache = false});
  EXPECT_EQ(plain.cached_tokens, 0);
  for (const int32_t batch : {1, 7, 32}) {
    for (const int32_t step_tokens : {17, 512}) {
      for (const bool warm : {false, true}) {
        const RunResult result =
            ExpectSame(plain, requests,
                       {.batch = batch, .step_tokens = step_tokens, .threads = 2, .warm = warm});
        EXPECT_GT(result.cached_tokens, warm ? 1000 : 0) << "nothing was shared";
      }
    }
  }
}

TEST_P(Invariance, SmallPoolChangesNoBit) {
  std::vector<Request> requests = MixedRequests(32, world_.vocab_size());
  for (Request& request : requests) request.stop.max_tokens += 30;  // into another block
  const RunResult plain = Plain(requests);
  int64_t preemptions = 0;
  for (const int32_t num_blocks : {6, 16}) {
    for (const int32_t step_tokens : {17, 512}) {
      preemptions += ExpectSame(plain, requests,
                                {.batch = 32,
                                 .step_tokens = step_tokens,
                                 .threads = 2,
                                 .num_blocks = num_blocks,
                                 .block_order = 5})
                         .preemptions;
    }
  }
  EXPECT_GT(preemptions, 0) << "the pools are too large to test anything";
}

// The requests exercise what they should.
TEST_P(Invariance, RequestsAreMixed) {
  const std::vector<Request> requests = MixedRequests(64, world_.vocab_size());
  const RunResult plain = Plain(requests);
  std::set<int32_t> tokens;
  size_t count = 0, short_ones = 0;
  for (const auto& [id, seen] : plain.outputs) {
    count += seen.size();
    for (const SeenToken& token : seen) tokens.insert(token.token);
    const Request& request = requests[static_cast<size_t>(id.request) - 1];
    short_ones += static_cast<int32_t>(seen.size()) < request.stop.max_tokens;
  }
  EXPECT_GT(count, 300u);
  EXPECT_GT(tokens.size(), 100u);
  EXPECT_GT(short_ones, 10u) << "stopped by a token";
}

// A runner that breaks the promise by a millionth of every second logit of the sequences it picks.
// Less may vanish when a logprob is rounded.
class LeakyRunner final : public ModelRunner {
 public:
  using Leaks = bool (*)(const StepBatch&, const SeqSpan&);
  LeakyRunner(ModelRunner* runner, Leaks leaks) : runner_(runner), leaks_(leaks) {}

  RunnerLimits Limits() const override { return runner_->Limits(); }
  StepOutput Forward(const StepBatch& batch) override {
    const LogitsView logits = runner_->Forward(batch).logits;
    values_.assign(logits.values.begin(), logits.values.end());
    group_max_.assign(logits.group_max.begin(), logits.group_max.end());
    for (const SeqSpan& seq : batch.seqs) {
      for (int32_t i = 0; i < seq.logits_count && leaks_(batch, seq); ++i) {
        Disturb(static_cast<size_t>(seq.logits_begin + i));
      }
    }
    return {.logits = {.values = values_, .group_max = group_max_}};
  }

 private:
  void Disturb(size_t row) {
    const auto vocab = static_cast<size_t>(Limits().vocab_size);
    const size_t groups = (vocab + kLogitGroup - 1) / kLogitGroup;
    const std::span<float> values = std::span(values_).subspan(row * vocab, vocab);
    for (size_t i = 0; i < vocab; i += 2) values[i] *= 1 + 0x1p-20f;
    for (size_t g = 0; g < groups; ++g) {
      const size_t begin = g * kLogitGroup;
      group_max_[row * groups + g] = *std::ranges::max_element(
          values.subspan(begin, std::min<size_t>(kLogitGroup, vocab - begin)));
    }
  }

  ModelRunner* runner_;
  Leaks leaks_;
  std::vector<float> values_, group_max_;
};

class BrokenInvariance : public testing::Test {
 protected:
  BrokenInvariance() : world_(kModels[0]), requests_(MixedRequests(16, world_.vocab_size())) {}

  uint64_t DigestOf(const RunShape& shape, LeakyRunner::Leaks leaks) {
    std::unique_ptr<LeakyRunner> leaky;
    return Digest(world_
                      .Run(requests_, shape,
                           [&](ModelRunner* runner) {
                             leaky = std::make_unique<LeakyRunner>(runner, leaks);
                             return leaky.get();
                           })
                      .outputs);
  }

  InvarianceWorld world_;
  const std::vector<Request> requests_;
};

TEST_F(BrokenInvariance, ErrorThatDependsOnTheBatchIsSeen) {
  const auto leaks = [](const StepBatch& batch, const SeqSpan&) { return batch.seqs.size() > 1; };
  const RunShape alone = {.batch = 1}, together = {.batch = 7};
  EXPECT_EQ(DigestOf(alone, leaks), Digest(world_.Run(requests_, alone).outputs));
  EXPECT_NE(DigestOf(together, leaks), DigestOf(alone, leaks));
}

TEST_F(BrokenInvariance, ErrorThatDependsOnTheChunkIsSeen) {
  const auto leaks = [](const StepBatch&, const SeqSpan& seq) { return seq.row_count > 32; };
  const RunShape small = {.step_tokens = 17}, large = {.step_tokens = 512};
  EXPECT_NE(DigestOf(large, leaks), DigestOf(small, leaks));
}

TEST_F(BrokenInvariance, ErrorInARecomputedRowIsSeen) {
  // A chunk that ends in a draw: the end of a prompt, or of what a preemption took away.
  const auto leaks = [](const StepBatch&, const SeqSpan& seq) { return seq.row_count > 1; };
  const RunShape shape = {.batch = 7, .step_tokens = 512};
  RunShape preempted = shape;
  preempted.preempt_at = 3;
  EXPECT_NE(DigestOf(preempted, leaks), DigestOf(shape, leaks));
}

TEST_F(BrokenInvariance, DrawThatForgetsItsSeedIsSeen) {
  std::vector<Request> other = requests_;
  for (Request& request : other) ++request.sampling.seed;
  EXPECT_NE(Digest(world_.Run(other, {}).outputs), Digest(world_.Run(requests_, {}).outputs));
}

INSTANTIATE_TEST_SUITE_P(Models, Invariance, testing::ValuesIn(kModels),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace quire
