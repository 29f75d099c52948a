// A model without weights that sees every mistake of paging: each KV slot holds (token, position,
// hash of the chain of tokens up to it); a row reads its whole past through the block table, and
// its logits are a function of the chain it found. A stale, misrouted or half-copied block is
// reported, and changes the output too. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/model_runner.h"

namespace quire {

struct FakeRow {
  int64_t step;  // 0 = first Forward
  TokenId token;
  int32_t position;
};

struct FakeModelOptions {
  RunnerLimits limits{.num_blocks = 16,
                      .vocab_size = 320,
                      .context_tokens = 1024,
                      .max_rows = 128,
                      .max_seqs = 64,
                      .max_logits_rows = 64};
  bool fatal = true;  // CHECK-fail on a mistake; else collect it in errors()
  std::function<bool(const FakeRow&)> nan_row;  // rows whose logits are NaN; empty = none
  std::vector<TokenId> script;  // if not empty: the token after position p is script[p], by far
};

class FakeModelRunner final : public ModelRunner {
 public:
  explicit FakeModelRunner(FakeModelOptions options);

  RunnerLimits Limits() const override { return options_.limits; }
  StepOutput Forward(const StepBatch& batch) override;

  // Overwrites a block that nobody holds: reading it afterwards is a mistake.
  void PoisonBlock(BlockId id);
  const std::vector<std::string>& errors() const { return errors_; }
  int64_t steps() const { return steps_; }

  // The logit of `token` after a chain; what a test compares with.
  static float Logit(uint64_t chain, int32_t token);
  static uint64_t Extend(uint64_t chain, TokenId token, int32_t position);

 private:
  struct Slot {
    TokenId token = TokenId::kNone;
    int32_t position = -1;
    uint64_t chain = 0;
  };
  void CheckBatch(const StepBatch& batch);
  void Copy(const BlockCopy& copy);
  void RunSequence(const StepBatch& batch, const SeqSpan& seq);
  uint64_t ReadPast(std::span<const BlockId> table, int32_t end);
  void WriteLogits(int32_t row, const FakeRow& at, uint64_t chain);
  bool Require(bool condition, const std::string& what);

  FakeModelOptions options_;
  std::vector<Slot> slots_;
  std::vector<int64_t> written_in_step_;  // [slots], 1 + step of the last write
  std::vector<float> logits_, group_max_;
  std::vector<std::string> errors_;
  int64_t steps_ = 0;
};

}  // namespace quire
