// Runs token sequences through a CpuModelRunner by hand-made batches, for the tests of this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "absl/log/check.h"
#include "runtime/model/cpu_model_runner.h"
#include "tests/testing/tiny_model.h"

namespace quire {

// A sequence with its blocks. `computed` tokens are in the KV pool.
struct TestSequence {
  std::vector<TokenId> tokens;
  std::vector<BlockId> blocks;
  int32_t computed = 0;

  TestSequence(std::vector<TokenId> all, int32_t first_block) : tokens(std::move(all)) {
    for (int32_t i = 0; i < BlocksFor(static_cast<int32_t>(tokens.size())); ++i) {
      blocks.push_back(BlockId{first_block + i});
    }
  }
  int32_t left() const { return static_cast<int32_t>(tokens.size()) - computed; }
};

// Owns the arrays of a StepBatch.
class TestBatch {
 public:
  // Next `count` tokens of the sequence, logits of all of them. One-row sequences come first by the
  // caller's order.
  void Add(TestSequence& s, int32_t count) {
    const int32_t row = static_cast<int32_t>(tokens_.size());
    seqs_.push_back(
        {row, count, s.computed + count, static_cast<int32_t>(blocks_.size()), row, count});
    for (int32_t i = 0; i < count; ++i, ++s.computed) {
      tokens_.push_back(s.tokens[s.computed]);
      positions_.push_back(s.computed);
      const int32_t block = static_cast<int32_t>(s.blocks[s.computed / kBlockTokens]);
      slots_.push_back(KvSlot{block * kBlockTokens + s.computed % kBlockTokens});
    }
    for (int32_t i = 0; i < BlocksFor(s.computed); ++i) blocks_.push_back(s.blocks[i]);
  }
  void AddCopy(BlockCopy copy) { copies_.push_back(copy); }
  const StepBatch& Get() {
    batch_ = {
        tokens_, positions_, slots_, blocks_, seqs_, copies_, static_cast<int32_t>(tokens_.size())};
    return batch_;
  }

 private:
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<KvSlot> slots_;
  std::vector<BlockId> blocks_;
  std::vector<SeqSpan> seqs_;
  std::vector<BlockCopy> copies_;
  StepBatch batch_;
};

// A runner with its pool. The model outlives it.
class TestRunner {
 public:
  TestRunner(const TinyModel& model, int32_t threads, KvDType kv = KvDType::kBF16)
      : pool_({.threads = threads}) {
    auto runner = CpuModelRunner::Create(
        model.config, model.weights,
        {.kv_dtype = kv, .num_blocks = 64, .max_rows = 256, .max_seqs = 256, .pool = &pool_});
    CHECK(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
  }
  CpuModelRunner& operator*() { return *runner_; }
  CpuModelRunner* operator->() { return runner_.get(); }

  using Rows = std::vector<std::vector<float>>;
  // Logits of every row of the batch.
  Rows Forward(TestBatch& batch) {
    const LogitsView logits = runner_->Forward(batch.Get()).logits;
    const size_t vocab = static_cast<size_t>(runner_->Limits().vocab_size);
    Rows rows;
    for (size_t i = 0; i < logits.values.size(); i += vocab) {
      rows.emplace_back(logits.values.begin() + i, logits.values.begin() + i + vocab);
    }
    return rows;
  }
  // All that is left of one sequence, alone, in chunks.
  Rows RunAlone(TestSequence& s, int32_t chunk) {
    Rows all;
    while (s.left() > 0) {
      TestBatch batch;
      batch.Add(s, std::min(chunk, s.left()));
      for (auto& row : Forward(batch)) all.push_back(std::move(row));
    }
    return all;
  }

 private:
  WorkerPool pool_;
  std::unique_ptr<CpuModelRunner> runner_;
};

}  // namespace quire
