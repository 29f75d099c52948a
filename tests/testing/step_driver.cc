#include "tests/testing/step_driver.h"

#include "absl/log/check.h"
#include "tests/testing/fake_draw.h"
#include "tests/testing/scheduler_peer.h"

namespace quire {
namespace {

FakeModelOptions WithLimits(const StepDriverOptions& options) {
  FakeModelOptions model = options.model;
  model.limits.num_blocks = options.num_blocks;
  model.limits.context_tokens = options.scheduler.context_tokens;
  model.limits.max_rows = options.scheduler.step_tokens;
  model.limits.max_seqs = options.scheduler.max_running;
  model.limits.max_logits_rows = options.scheduler.max_running;
  return model;
}

}  // namespace

StepDriver::StepDriver(StepDriverOptions options)
    : options_(std::move(options)),
      scheduler_(options_.scheduler, options_.num_blocks),
      runner_(WithLimits(options_)),
      builder_(runner_.Limits()) {}

std::string StepDriver::Step(MonotonicTime now) {
  std::string text = Begin(now);
  End();
  return text;
}

std::string StepDriver::Begin(MonotonicTime now) {
  plan_ = &scheduler_.Schedule(now);
  sampled_.clear();
  if (plan_->num_tokens > 0) {
    const StepBatch& batch = builder_.Build(*plan_);
    const StepOutput out = runner_.Forward(batch);
    FakeDrawAll(out.logits, runner_.Limits().vocab_size, builder_.specs(), sampled_);
  }
  scheduler_.CheckInvariants();
  return plan_->DebugString();
}

void StepDriver::End() {
  events_.clear();
  scheduler_.Commit(sampled_, events_);
  scheduler_.CheckInvariants();
  for (const TokenEvent& event : events_) {
    Output& output = outputs_[event.sequence];
    output.events_after_finish += output.finishes;
    if (event.token != TokenId::kNone) output.tokens.push_back(event.token);
    if (event.finish == FinishReason::kNone) continue;
    ++output.finishes;
    output.finish = event.finish;
    output.outcome = event.outcome;
    output.preemptions = event.preemptions;
    output.cached_prompt_tokens = event.cached_prompt_tokens;
    output.first_scheduled = event.first_scheduled;
  }
  const BlockPool& pool = SchedulerTestPeer::Pool(scheduler_);
  for (int32_t i = 0; i < pool.total(); ++i) {
    if (pool.ref_count(BlockId{i}) == 0 && !pool.findable(BlockId{i})) {
      runner_.PoisonBlock(BlockId{i});
    }
  }
}

void StepDriver::RunUntilIdle(int32_t max_steps, MonotonicTime now) {
  for (int32_t i = 0; scheduler_.HasWork(); ++i) {
    CHECK_LT(i, max_steps) << "work is left";
    Step(now);
  }
}

const Output& StepDriver::output(uint64_t request, int32_t index) const {
  static const Output kNothing;
  const auto found = outputs_.find(SequenceId{RequestId{request}, index});
  return found == outputs_.end() ? kNothing : found->second;
}

}  // namespace quire
