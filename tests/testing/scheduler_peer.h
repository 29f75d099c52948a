// What tests may see of the scheduler's inside.
#pragma once

#include <memory>

#include "scheduler/scheduler_state.h"

namespace quire {

struct SchedulerTestPeer {
  static Scheduler::State& Get(Scheduler& scheduler) { return *scheduler.state_; }
  static const Scheduler::State& Get(const Scheduler& scheduler) { return *scheduler.state_; }
  static BlockPool& Pool(Scheduler& scheduler) { return Get(scheduler).pool; }
  static Sequence* Find(Scheduler& scheduler, SequenceId id) {
    auto& live = Get(scheduler).live;
    const auto found = live.find(id.request);
    return found == live.end() ? nullptr
                               : &found->second->sequences[static_cast<size_t>(id.output_index)];
  }
};

}  // namespace quire
