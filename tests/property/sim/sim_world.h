// A world: the production scheduler and batch builder with a fake model and a clock, driven by
// operations and compared with its shadow after each. Letters and numbers in problems are those of
// the list of invariants: A allocator, L lifecycle, S scheduler, D determinism. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/batch_builder.h"
#include "scheduler/scheduler.h"
#include "tests/property/sim/shadow.h"
#include "tests/property/sim/sim_case.h"
#include "tests/testing/fake_model_runner.h"

namespace quire::sim {

struct Result {
  std::string problem;     // the first violated rule, "" = none
  int64_t steps = 0;       // of the scheduler
  uint64_t decisions = 0;  // hash of every plan and event
  Coverage coverage;
};

class World {
 public:
  explicit World(const Config& config);

  void Apply(const Op& op);
  // Faults are over and nothing arrives: everything ends within a bound, and nothing is left.
  void Settle();
  bool failed() const { return !result_.problem.empty(); }
  const Result& result() const { return result_; }
  int32_t open() const { return static_cast<int32_t>(live_.size()); }
  const ShadowRequest* Find(uint32_t id) const;  // nullptr: unknown, or over
  // Of a tenant: what it has had of the service, by weight, in prompt tokens.
  double had(int32_t tenant) const { return had_.at(static_cast<size_t>(tenant)); }

 private:
  // sim_world.cc
  Request MakeSimRequest(const Submit& submit) const;
  void DoSubmit(const Submit& submit);
  void DoAbort(uint32_t id, FinishReason reason);
  void DoAbortOutput(uint32_t id, int32_t output, FinishReason reason);
  void DoPause(uint32_t id, bool paused);
  absl::StatusCode ExpectedVerdict(const Request& request) const;
  uint64_t StateHash();
  ShadowSeq* FindSeq(const SequenceId& id);
  template <typename Visit>
  void ForEachSeq(Visit visit) {
    for (const auto& request : live_) {
      for (ShadowSeq& seq : request->seqs) {
        if (!seq.ended) visit(seq);
      }
    }
  }
  void Require(bool condition, std::string_view what) {
    if (!condition && !failed()) [[unlikely]]
      Fail(what);
  }
  void Fail(std::string_view what);

  // sim_step.cc
  void DoStep(const Op& op);
  void MarkDue();
  void MoveShadow(const StepPlan& plan);
  void InjectBeforeCommit(const Op& op, const StepPlan& plan);
  void InjectIntoDraws(const Op& op);
  void Fork(ShadowSeq& first);
  void ExpectEvents(const StepPlan& plan);
  void CheckEvents();
  void CheckEvent(const TokenEvent& event, ShadowSeq& seq);
  void EndSeq(ShadowSeq& seq, FinishReason finish);
  FinishReason DueReason(const ShadowSeq& seq) const;
  MonotonicTime DueTime(const ShadowSeq& seq) const;
  // sim_checks.cc
  void CheckPlan(const StepPlan& plan);
  void CheckPlanned(const PlannedSeq& planned, ShadowSeq& seq);
  void CheckBooks();
  void CheckWakeUp();
  void CheckNothingLeft();
  // sim_order.cc
  void CheckAdmission(const StepPlan& plan);
  void CheckPreemption(const StepPlan& plan);
  void CheckVictim(const ShadowSeq& victim, bool some_admitted);
  void CheckNeeded(const StepPlan& plan);
  void TakeLevels(const StepPlan& plan);
  bool Outranks(const ShadowSeq& a, const ShadowSeq& b) const;
  enum class Certain : uint8_t { kNot, kByOrder, kByShare };
  Certain GoesBefore(const ShadowSeq& a, const ShadowSeq& b, int32_t top);
  bool HadLess(const ShadowSeq& a, const ShadowSeq& b);
  int32_t PriorityOf(const ShadowSeq& seq) const;
  void CheckProgress(const StepPlan& plan);
  // sim_shares.cc
  double WeightOf(int32_t tenant) const;
  double& HadOf(const ShadowSeq& seq);
  void LiftShare(int32_t tenant);
  void ChargeStart(const ShadowSeq& seq);
  void ChargeDraw(const ShadowSeq& seq);
  void CheckShares();
  // sim_blocks.cc
  void MoveTables(const StepPlan& plan);
  void CopyContents(const StepPlan& plan);
  // What a step does to one table: a planned one, or one that was admitted and got no tokens yet.
  struct Move {
    ShadowSeq* seq;
    std::span<const BlockId> table;
    int32_t computed;
  };
  void CollectMoves(const StepPlan& plan);
  void CheckMove(const Move& move);
  void LetGoOfTails(const StepPlan& plan);
  void MoveTable(const Move& move);
  void TakeFresh(const ShadowSeq& seq, BlockId id, int32_t copied);
  void CheckShared(const ShadowSeq& seq, BlockId id, int32_t tokens);
  void FillBlocks(const ShadowSeq& seq, int32_t end);
  void TouchEqual(const ShadowSeq& seq);
  void Taint(const ShadowSeq& seq);
  void CheckMerged(ShadowSeq& seq);
  int32_t LimitTokens(const Request& request) const;
  ShadowBlock& BlockOf(BlockId id) { return blocks_[static_cast<size_t>(id)]; }
  int32_t& HoldersOf(BlockId id) { return holders_[static_cast<size_t>(id)]; }
  void CheckHolders();
  void PoisonFreeBlocks();

  Config config_;
  Scheduler scheduler_;
  FakeModelRunner runner_;
  BatchBuilder builder_;
  std::vector<std::unique_ptr<ShadowRequest>> live_;  // in order of arrival
  int64_t now_ = 1000;
  int64_t arrivals_ = 0;
  int32_t admitted_in_step_ = 0;
  std::array<double, kTenants> had_{};  // of the service, by weight
  int32_t last_tenant_ = 0;             // whose prompt started last
  bool withdrawn_now_ = false;          // a draw of this step was not finite
  Result result_;

  // Running totals, for the statistics.
  int64_t started_ = 0, finished_ = 0, preempted_ = 0;
  int64_t query_tokens_ = 0, hit_tokens_ = 0;
  int64_t prefill_rows_ = 0, recompute_rows_ = 0, decode_rows_ = 0;

  // Storage of a step.
  std::vector<Sampled> sampled_;
  std::vector<TokenEvent> events_;
  std::vector<int32_t> holders_;  // [blocks], by the tables of the shadow
  std::vector<Move> moves_;
  std::vector<BlockCopy> copy_into_;  // [blocks], of this step; 0 tokens: none

  std::vector<ShadowBlock> blocks_;           // [blocks]
  std::vector<std::vector<TokenId>> wholes_;  // by request id: prompt and expected output
};

// Applies the operations and settles.
Result RunCase(const Case& c);

}  // namespace quire::sim
