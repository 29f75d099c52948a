#include "scheduler/simulate/simulation.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <queue>
#include <utility>

#include "absl/log/check.h"
#include "runtime/base/mix_bits.h"
#include "scheduler/simulate/trace_request.h"

// At one moment, first the steps that end then are committed, then arrivals are routed, then idle
// replicas with work begin: an arrival at the edge of a step joins the next one.
namespace quire {
namespace {

class Run {
 public:
  Run(const SimulationOptions& options, const CostModel& cost, const Trace& trace)
      : options_(options), trace_(trace), book_(trace, options.objective) {
    CHECK_GE(options.replicas, 1);
    requests_.resize(static_cast<size_t>(options.replicas));
    for (int32_t i = 0; i < options.replicas; ++i) {
      replicas_.push_back(std::make_unique<Replica>(options.replica, cost, &book_, &timeline_));
    }
  }

  SimulationResult Go() {
    const std::vector<Arrival>& arrivals = trace_.arrivals;
    size_t next = 0;
    int64_t now = 0;
    while (next < arrivals.size() || !ends_.empty()) {
      now = ends_.empty() ? arrivals[next].time_ns : Nanos(ends_.top().first);
      if (next < arrivals.size()) now = std::min(now, arrivals[next].time_ns);
      touched_.clear();
      for (; !ends_.empty() && Nanos(ends_.top().first) == now; ends_.pop()) {
        replicas_[ends_.top().second]->End();
        touched_.push_back(ends_.top().second);
      }
      for (; next < arrivals.size() && arrivals[next].time_ns == now; ++next) Route(next);
      for (const size_t i : touched_) {
        Replica& replica = *replicas_[i];
        if (replica.in_step() || !replica.HasWork()) continue;
        ends_.emplace(replica.Begin(MonotonicTime{now}), i);
      }
    }
    CHECK_EQ(book_.open(), 0) << "a request was lost";
    return Result(static_cast<double>(now) * 1e-9);
  }

 private:
  using StepEnd = std::pair<MonotonicTime, size_t>;  // when, which replica

  void Route(size_t arrival) {
    book_.Arrived(TraceRequestId(arrival));
    const size_t target = TargetOf(trace_.arrivals[arrival]);
    replicas_[target]->Submit(RequestOf(trace_, arrival, kSimulatedVocabulary));
    ++requests_[target];
    touched_.push_back(target);
  }

  size_t TargetOf(const Arrival& arrival) {
    const size_t count = replicas_.size();
    if (options_.routing == Routing::kRoundRobin) return turn_++ % count;
    if (options_.routing == Routing::kPrefixAffinity && arrival.prefix >= 0) {
      return MixBits(static_cast<uint64_t>(arrival.prefix)) % count;
    }
    const auto least = std::ranges::min_element(
        replicas_, {}, [](const std::unique_ptr<Replica>& r) { return r->open(); });
    return static_cast<size_t>(least - replicas_.begin());
  }

  SimulationResult Result(double seconds) {
    SimulationResult result{.groups = book_.Totals(),
                            .replicas = {},
                            .timeline = std::move(timeline_),
                            .seconds = seconds,
                            .offered_seconds = trace_.Seconds()};
    for (size_t i = 0; i < replicas_.size(); ++i) {
      result.replicas.push_back({.requests = requests_[i],
                                 .steps = replicas_[i]->steps(),
                                 .busy_seconds = replicas_[i]->busy_seconds(),
                                 .scheduler = replicas_[i]->Stats()});
    }
    return result;
  }

  const SimulationOptions& options_;
  const Trace& trace_;
  RequestBook book_;
  Timeline timeline_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<int64_t> requests_;  // routed to each
  std::priority_queue<StepEnd, std::vector<StepEnd>, std::greater<>> ends_;
  std::vector<size_t> touched_;  // replicas that may begin a step now
  size_t turn_ = 0;
};

}  // namespace

double SimulationResult::Attainment() const {
  const GroupTotals& g = all();
  return g.arrived == 0 ? 1 : static_cast<double>(g.good) / static_cast<double>(g.arrived);
}

double SimulationResult::Utilisation() const {
  if (seconds <= 0) return 0;
  double busy = 0;
  for (const ReplicaTotals& replica : replicas) busy += replica.busy_seconds;
  return busy / (seconds * static_cast<double>(replicas.size()));
}

SchedulerStats SimulationResult::Scheduler() const {
  SchedulerStats sum;
  for (const ReplicaTotals& replica : replicas) {
    const SchedulerStats& s = replica.scheduler;
    sum.blocks_total += s.blocks_total;
    sum.preemptions += s.preemptions;
    sum.preemptions_for_blocks += s.preemptions_for_blocks;
    sum.preemptions_for_priority += s.preemptions_for_priority;
    sum.prefill_tokens += s.prefill_tokens;
    sum.recompute_tokens += s.recompute_tokens;
    sum.decode_tokens += s.decode_tokens;
    sum.prefix_query_tokens += s.prefix_query_tokens;
    sum.prefix_hit_tokens += s.prefix_hit_tokens;
    sum.block_evictions += s.block_evictions;
  }
  return sum;
}

SimulationResult Simulate(const SimulationOptions& options, const CostModel& cost,
                          const Trace& trace) {
  return Run(options, cost, trace).Go();
}

}  // namespace quire
