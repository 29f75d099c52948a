// A model without weights that sees every mistake of paging: each KV slot holds (token, position,
// hash of the chain of tokens up to it); a row reads its whole past through the block table, and
// its logits are a function of the chain it found. A stale, misrouted or half-copied block is
// reported, and changes the output too. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

  // The logit of `token` after a chain, and the chain of a sequence: what a test compares with.
  static constexpr uint64_t kRoot = 0x5157u;  // of no tokens
  // The same under a window of >= 2 tokens: every value depends on what its predecessors saw.
  static uint64_t Root(int32_t window_tokens, int32_t sink_tokens);
  static float Logit(uint64_t chain, int32_t token);
  static uint64_t Extend(uint64_t chain, TokenId token, int32_t position);

 private:
  struct Slot {
    int32_t position = -1;
    uint64_t parent = 0;  // chain before the token
    uint64_t chain = 0;   // Extend(parent, token, position), by construction
  };
  // What is known of a block without looking at its slots again: so that reading a past costs a
  // few instructions per block.
  struct BlockNote {
    int32_t linked = 0;     // leading slots at consecutive positions, each the parent of the next
    bool poisoned = false;  // nothing has been written since it was poisoned
    int64_t row_step = 0;   // 1 + step of the last row written to it
  };
  void CheckBatch(const StepBatch& batch);
  void Copy(const BlockCopy& copy);
  void RunSequence(const StepBatch& batch, const SeqSpan& seq);
  uint64_t ReadPast(std::span<const BlockId> table, const SeqSpan& seq);
  uint64_t ReadSlots(int32_t block, int32_t position, int32_t count, uint64_t chain);
  void WriteSlot(size_t slot, const Slot& value);
  void WriteLogits(int32_t row, const FakeRow& at, uint64_t chain);
  // The parts of the message are joined only when it is needed.
  template <typename... Parts>
  bool Require(bool condition, const Parts&... parts) {
    if (!condition) [[unlikely]]
      Report(absl::StrCat(parts...));
    return condition;
  }
  void Report(const std::string& what);

  FakeModelOptions options_;
  std::vector<Slot> slots_;
  std::vector<BlockNote> notes_;          // [blocks]
  std::vector<int64_t> written_in_step_;  // [slots], 1 + step of the last write
  std::vector<float> logits_, group_max_;
  std::vector<std::string> errors_;
  int64_t steps_ = 0;
};

}  // namespace quire
