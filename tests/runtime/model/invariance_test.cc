// The promise of batch invariance at the runner: a row's logits are the same bits whatever runs
// beside it, however its sequence is cut, on any number of threads, in any blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "tests/runtime/model/runner_fixture.h"

namespace quire {
namespace {

using Rows = TestRunner::Rows;

void ExpectSameBits(const Rows& a, const Rows& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)), 0) << "row " << i;
  }
}

class BatchInvariance : public testing::TestWithParam<std::pair<DType, KvDType>> {
 protected:
  BatchInvariance() : model_(MakeTinyModel({.layers = 3, .linear = GetParam().first})) {}

  Rows Alone(int32_t chunk, int32_t threads) {
    TestRunner runner(model_, threads, GetParam().second);
    TestSequence s = Sequence();
    return runner.RunAlone(s, chunk);
  }
  TestSequence Sequence(int32_t first_block = 0) const {
    return TestSequence(RandomTokens(model_.config, 150, 11), first_block);
  }

  const TinyModel model_;
};

TEST_P(BatchInvariance, ChunkSizeChangesNoBit) {
  const Rows one_by_one = Alone(1, 1);
  for (int32_t chunk : {3, 17, 64, 150}) ExpectSameBits(one_by_one, Alone(chunk, 1));
}

TEST_P(BatchInvariance, ThreadsChangeNoBit) {
  const Rows expected = Alone(17, 1);
  for (int32_t threads : {2, 3}) ExpectSameBits(expected, Alone(17, threads));
  ExpectSameBits(expected, Alone(1, 2));
}

TEST_P(BatchInvariance, ShuffledBlocksChangeNoBit) {
  const Rows expected = Alone(64, 2);
  TestRunner runner(model_, 2, GetParam().second);
  TestSequence s = Sequence();
  std::mt19937_64 random(3);
  std::vector<BlockId> blocks;
  for (int32_t i = 0; i < 64; ++i) blocks.push_back(BlockId{i});
  std::ranges::shuffle(blocks, random);
  std::copy_n(blocks.begin(), s.blocks.size(), s.blocks.begin());
  ExpectSameBits(expected, runner.RunAlone(s, 64));
}

TEST_P(BatchInvariance, MatesChangeNoBit) {
  const Rows expected = Alone(150, 1);
  for (int32_t mates : {1, 6, 12}) {
    TestRunner runner(model_, 2, GetParam().second);
    TestSequence s = Sequence(40);
    std::vector<TestSequence> others;
    for (int32_t m = 0; m < mates; ++m) {
      others.emplace_back(RandomTokens(model_.config, 160, 100 + m), m * 3);
    }
    Rows rows;
    std::mt19937_64 random(mates);
    while (s.left() > 0) {  // mates decode one token a step, this one takes what it likes
      TestBatch batch;
      int32_t before = 0;
      for (TestSequence& other : others) {
        if (other.left() == 0 || random() % 4 == 0) continue;
        batch.Add(other, 1);
        ++before;
      }
      batch.Add(s, std::min<int32_t>(s.left(), 1 + random() % 60));
      Rows step = runner.Forward(batch);
      std::move(step.begin() + before, step.end(), std::back_inserter(rows));
    }
    ExpectSameBits(expected, rows);
  }
}

TEST_P(BatchInvariance, CopiedPrefixChangesNoBit) {
  const Rows expected = Alone(150, 2);
  TestRunner runner(model_, 2, GetParam().second);
  TestSequence original = Sequence(0);
  (void)runner.RunAlone(original, 50);
  TestSequence fork = Sequence(10);
  fork.blocks[0] = original.blocks[0];
  fork.computed = 100;  // one shared block, and 36 tokens of a copied one
  TestBatch batch;
  batch.AddCopy({original.blocks[1], fork.blocks[1], 36});
  batch.Add(fork, 50);
  const Rows tail = runner.Forward(batch);
  ExpectSameBits(Rows(expected.begin() + 100, expected.end()), tail);
}

TEST_P(BatchInvariance, DirtyKvPoolChangesNoBit) {
  const Rows expected = Alone(64, 2);
  TestRunner runner(model_, 2, GetParam().second);
  TestSequence poison(RandomTokens(model_.config, 190, 77), 0);
  (void)runner.RunAlone(poison, 64);  // other tokens were in the blocks before
  TestSequence s = Sequence(0);
  ExpectSameBits(expected, runner.RunAlone(s, 64));
}

INSTANTIATE_TEST_SUITE_P(Types, BatchInvariance,
                         testing::Values(std::pair(DType::kQ4_1, KvDType::kBF16),
                                         std::pair(DType::kQ8_0, KvDType::kBF16),
                                         std::pair(DType::kF32, KvDType::kF32),
                                         std::pair(DType::kQ4_1, KvDType::kInt8),
                                         std::pair(DType::kQ4_1, KvDType::kInt16)),
                         [](const auto& info) {
                           return std::string(TraitsOf(info.param.first).name) + "Kv" +
                                  KvDTypeName(info.param.second);
                         });

}  // namespace
}  // namespace quire
