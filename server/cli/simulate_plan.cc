#include "server/cli/simulate_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/read_file.h"
#include "runtime/base/status_macros.h"
#include "scheduler/simulate/capacity_search.h"
#include "scheduler/simulate/idle_server.h"
#include "server/cli/counted.h"

namespace quire {
namespace {

constexpr size_t kIdleRequests = 10'000;  // enough for a percentile, and some seconds at most

// How an idle server misses the objective: what it gives, for each part that was asked for.
std::string IdleMiss(const SimulationResult& idle, const SimulateFlags& flags,
                     const LatencyObjective& slo) {
  const GroupTotals& all = idle.all();
  std::string text = absl::StrFormat(
      "even an idle server misses --slo: of %d requests, each alone on it, %.2f %% meet %s, wanted "
      "%g %%",
      all.arrived, 100 * idle.Attainment(), flags.slo, 100 * flags.slo_target);
  const std::string quantile = absl::StrFormat("p%g", 100 * flags.slo_target);
  if (std::isfinite(slo.ttft_s)) {
    absl::StrAppendFormat(&text, "; time to first token %s %.1f ms", quantile,
                          1e3 * all.ttft.Quantile(flags.slo_target));
  }
  if (std::isfinite(slo.itl_s)) {
    absl::StrAppendFormat(&text, "; between tokens %.1f ms on average", 1e3 * all.itl.Mean());
  }
  if (std::isfinite(slo.e2e_s)) {
    absl::StrAppendFormat(&text, "; end to end %s %.2f s", quantile,
                          all.e2e.Quantile(flags.slo_target));
  }
  if (all.rejected > 0) absl::StrAppendFormat(&text, "; %d refused", all.rejected);
  return text;
}

class Planner {
 public:
  Planner(const SimulateFlags& flags, const SimulationOptions& options, const CostFile& cost,
          const Traffic& traffic)
      : flags_(flags), options_(options), cost_(cost), traffic_(traffic) {}

  Answer Go() {
    Answer answer;
    if (flags_.find_rate || flags_.find_replicas) {
      answer.idle = SimulateIdle(options_, cost_.fit.model, traffic_.trace(), kIdleRequests);
      if (!Passes(*answer.idle, "an idle server")) {
        answer.missed = IdleMiss(*answer.idle, flags_, options_.objective);
      }
    }
    const bool search = answer.idle.has_value() && answer.missed.empty();
    if (search && flags_.find_rate) {
      FindRate(&answer);
    } else if (search) {
      FindReplicas(&answer);
    } else {
      answer.rate = traffic_.rate();
      answer.result = Simulate(options_, cost_.fit.model, traffic_.trace());
    }
    return answer;
  }

 private:
  bool Passes(const SimulationResult& result, const std::string& what) const {
    const double part = result.Attainment();
    std::fprintf(stderr, "simulate: %s: %.2f %% of %lld requests meet the objective\n",
                 what.c_str(), 100 * part, static_cast<long long>(result.all().arrived));
    return part >= flags_.slo_target;
  }

  void FindRate(Answer* answer) {
    const double rate = LargestPassing(traffic_.rate(), [&](double r) {
      const std::optional<Trace> trace = traffic_.At(r);
      return trace.has_value() && Passes(Simulate(options_, cost_.fit.model, *trace),
                                         absl::StrFormat("%.4g requests/s", r));
    });
    if (rate > 0) answer->found_rate = rate;
    if (rate <= 0) answer->missed = "no rate down to a thousandth of the given one meets --slo";
    answer->rate = answer->found_rate.value_or(traffic_.rate());
    const std::optional<Trace> trace = traffic_.At(answer->rate);
    CHECK(trace.has_value()) << "it was made before";
    answer->result = Simulate(options_, cost_.fit.model, *trace);
  }

  void FindReplicas(Answer* answer) {
    SimulationOptions options = options_;
    answer->found_replicas = LeastPassing(flags_.max_replicas, [&](int32_t n) {
      options.replicas = n;
      return Passes(Simulate(options, cost_.fit.model, traffic_.trace()), Counted(n, "replica"));
    });
    if (!answer->found_replicas.has_value()) answer->missed = "--max-replicas do not meet --slo";
    options.replicas = answer->found_replicas.value_or(flags_.max_replicas);
    answer->rate = traffic_.rate();
    answer->result = Simulate(options, cost_.fit.model, traffic_.trace());
  }

  const SimulateFlags& flags_;
  const SimulationOptions& options_;
  const CostFile& cost_;
  const Traffic& traffic_;
};

}  // namespace

absl::StatusOr<Traffic> Traffic::Of(const SimulateFlags& flags, const SimulationOptions& options) {
  Traffic traffic;
  if (flags.trace.empty()) {
    ASSIGN_OR_RETURN(traffic.arrivals_, flags.Arrivals(options));
    ASSIGN_OR_RETURN(traffic.trace_, GenerateArrivals(traffic.arrivals_));
    traffic.generated_ = true;
    traffic.rate_ = flags.rate;
    if (traffic.trace_.arrivals.empty()) {
      return absl::InvalidArgumentError("no request arrives in --duration at --rate");
    }
    return traffic;
  }
  ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(flags.trace, size_t{1} << 30));
  absl::StatusOr<Trace> trace = ParseTrace(flags.trace, text);
  if (!trace.ok()) return absl::FailedPreconditionError(trace.status().message());
  traffic.trace_ = *std::move(trace);
  const auto count = static_cast<double>(traffic.trace_.arrivals.size());
  traffic.rate_ = count / std::max(traffic.trace_.Seconds(), 1e-3);
  return traffic;
}

std::optional<Trace> Traffic::At(double rate) const {
  if (!generated_) return AtSpeed(trace_, rate / rate_);
  ArrivalOptions faster = arrivals_;
  faster.rate = rate;
  absl::StatusOr<Trace> trace = GenerateArrivals(faster);
  if (!trace.ok() || trace->arrivals.empty()) return std::nullopt;
  return *std::move(trace);
}

Answer PlanCapacity(const SimulateFlags& flags, const SimulationOptions& options,
                    const CostFile& cost, const Traffic& traffic) {
  return Planner(flags, options, cost, traffic).Go();
}

}  // namespace quire
