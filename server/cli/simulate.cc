#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/read_file.h"
#include "runtime/base/status_macros.h"
#include "scheduler/simulate/capacity_search.h"
#include "scheduler/simulate/report_table.h"
#include "scheduler/simulate/result_plot.h"
#include "server/cli/commands.h"
#include "server/cli/simulate_flags.h"
#include "server/cli/simulate_json.h"
#include "server/cli/text_file.h"

// `quire simulate`: the production scheduler on virtual time, to plan capacity before buying
// machines.
namespace quire {
namespace {

using Json = nlohmann::ordered_json;

// The traffic of the flags, at any rate.
class Traffic {
 public:
  static absl::StatusOr<Traffic> Of(const SimulateFlags& flags, const SimulationOptions& options) {
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

  const Trace& trace() const { return trace_; }
  double rate() const { return rate_; }  // requests per second
  // Nothing beyond what can be generated, and where no request arrives: that would meet any
  // objective.
  std::optional<Trace> At(double rate) const {
    if (!generated_) return AtSpeed(trace_, rate / rate_);
    ArrivalOptions faster = arrivals_;
    faster.rate = rate;
    absl::StatusOr<Trace> trace = GenerateArrivals(faster);
    if (!trace.ok() || trace->arrivals.empty()) return std::nullopt;
    return *std::move(trace);
  }

 private:
  Trace trace_;
  bool generated_ = false;
  ArrivalOptions arrivals_;
  double rate_ = 0;
};

std::string Replicas(size_t count) {
  return absl::StrCat(count, count == 1 ? " replica" : " replicas");
}

struct Answer {
  SimulationResult result{};
  double rate = 0;  // simulated
  std::optional<double> found_rate{};
  std::optional<int32_t> found_replicas{};
  bool missed = false;  // a search found nothing
};

class Planner {
 public:
  Planner(const SimulateFlags& flags, const SimulationOptions& options, const CostFile& cost,
          const Traffic& traffic)
      : flags_(flags), options_(options), cost_(cost), traffic_(traffic) {}

  Answer Go() {
    if (flags_.find_rate) return FindRate();
    if (flags_.find_replicas) return FindReplicas();
    return {.result = Simulate(options_, cost_.fit.model, traffic_.trace()),
            .rate = traffic_.rate()};
  }

 private:
  bool Passes(const SimulationResult& result, const std::string& what) const {
    const double part = result.Attainment();
    std::fprintf(stderr, "simulate: %s: %.2f %% of %lld requests meet the objective\n",
                 what.c_str(), 100 * part, static_cast<long long>(result.all().arrived));
    return part >= flags_.slo_target;
  }

  Answer FindRate() {
    const double rate = LargestPassing(traffic_.rate(), [&](double r) {
      const std::optional<Trace> trace = traffic_.At(r);
      return trace.has_value() && Passes(Simulate(options_, cost_.fit.model, *trace),
                                         absl::StrFormat("%.4g requests/s", r));
    });
    Answer answer{.rate = rate > 0 ? rate : traffic_.rate(), .missed = rate <= 0};
    if (rate > 0) answer.found_rate = rate;
    const std::optional<Trace> trace = traffic_.At(answer.rate);
    CHECK(trace.has_value()) << "it was made before";
    answer.result = Simulate(options_, cost_.fit.model, *trace);
    return answer;
  }

  Answer FindReplicas() {
    SimulationOptions options = options_;
    const std::optional<int32_t> replicas = LeastPassing(flags_.max_replicas, [&](int32_t n) {
      options.replicas = n;
      return Passes(Simulate(options, cost_.fit.model, traffic_.trace()),
                    Replicas(static_cast<size_t>(n)));
    });
    options.replicas = replicas.value_or(flags_.max_replicas);
    return {.result = Simulate(options, cost_.fit.model, traffic_.trace()),
            .rate = traffic_.rate(),
            .found_replicas = replicas,
            .missed = !replicas.has_value()};
  }

  const SimulateFlags& flags_;
  const SimulationOptions& options_;
  const CostFile& cost_;
  const Traffic& traffic_;
};

double GoodPerSecond(const SimulationResult& result) {
  return static_cast<double>(result.all().good) / std::max(result.seconds, 1e-9);
}

std::string TrafficLine(const Answer& answer, const SimulateFlags& flags) {
  return absl::StrFormat("%d requests in %.1f s (%.4g/s) %s, %s, %s", answer.result.all().arrived,
                         answer.result.offered_seconds, answer.rate,
                         flags.trace.empty() ? "generated" : "from a trace",
                         Replicas(answer.result.replicas.size()), flags.routing);
}

std::string CostLine(const CostFile& cost) {
  return absl::StrFormat("%s on %s, %s, %d threads, %s KV", cost.model, cost.cpu, cost.isa,
                         cost.threads, cost.kv_dtype);
}

void PrintTables(const Answer& answer, const SimulateFlags& flags, const CostFile& cost) {
  const SimulationResult& result = answer.result;
  std::string text =
      absl::StrCat("traffic     ", TrafficLine(answer, flags), "\ncost        ", CostLine(cost),
                   "\n", ReplicaTable(result), "\n", LatencyTable(result.groups, result.seconds));
  if (!flags.slo.empty()) {
    absl::StrAppendFormat(&text,
                          "\nobjective   %s: met by %.2f %% of the requests, goodput %.4g/s\n",
                          flags.slo, 100 * result.Attainment(), GoodPerSecond(result));
  }
  if (answer.found_rate.has_value()) {
    absl::StrAppendFormat(&text, "capacity    %.4g requests/s with %s\n", *answer.found_rate,
                          Replicas(result.replicas.size()));
  } else if (answer.found_replicas.has_value()) {
    absl::StrAppendFormat(&text, "capacity    %s for %.4g requests/s\n",
                          Replicas(static_cast<size_t>(*answer.found_replicas)), answer.rate);
  }
  std::fputs(text.c_str(), stdout);
}

void PrintJson(const Answer& answer, const SimulateFlags& flags, const CostFile& cost) {
  Json json = {{"rate", answer.rate},
               {"seed", flags.seed},
               {"routing", flags.routing},
               {"cost",
                {{"model", cost.model},
                 {"cpu", cost.cpu},
                 {"isa", cost.isa},
                 {"threads", cost.threads},
                 {"kv_dtype", cost.kv_dtype}}}};
  json.update(SimulationJson(answer.result));
  json["slo"] = nullptr;
  if (!flags.slo.empty()) {
    json["slo"] = {{"objective", flags.slo},
                   {"target", flags.slo_target},
                   {"attainment", answer.result.Attainment()},
                   {"goodput_per_s", GoodPerSecond(answer.result)}};
  }
  json["found_rate"] = answer.found_rate.has_value() ? Json(*answer.found_rate) : Json();
  json["found_replicas"] =
      answer.found_replicas.has_value() ? Json(*answer.found_replicas) : Json();
  std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

absl::StatusOr<int> Run(const SimulateFlags& flags) {
  RETURN_IF_ERROR(flags.CheckTogether());
  ASSIGN_OR_RETURN(const CostFile cost, ReadCostFile(flags.cost));
  ASSIGN_OR_RETURN(SimulationOptions options, flags.Options(cost));
  ASSIGN_OR_RETURN(const Traffic traffic, Traffic::Of(flags, options));
  ASSIGN_OR_RETURN(options.replica.scheduler.queue.tenant_weights,
                   flags.TenantWeights(traffic.trace().tenants));
  if (!flags.save_trace.empty()) {
    RETURN_IF_ERROR(WriteTextFile(flags.save_trace, TraceCsv(traffic.trace())));
  }
  const Answer answer = Planner(flags, options, cost, traffic).Go();
  if (!flags.plot.empty()) {
    RETURN_IF_ERROR(WriteTextFile(
        flags.plot, ResultPlot(answer.result, TrafficLine(answer, flags), CostLine(cost))));
  }
  (flags.json ? PrintJson : PrintTables)(answer, flags, cost);
  if (!answer.missed) return kExitOk;
  return Fail(kExitFailed, flags.find_rate
                               ? "no rate down to a thousandth of the given one meets --slo"
                               : "--max-replicas do not meet --slo");
}

}  // namespace

int RunSimulate(const Args& args) {
  SimulateFlags flags;
  CLI::App app(
      "Predicts latency and capacity: the production scheduler on virtual time, fed by a trace or "
      "by made-up arrivals, with the measured cost of a step.",
      "quire simulate");
  flags.AddTo(app);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const absl::StatusOr<int> code = Run(flags);
  if (code.ok()) return *code;
  const bool usage = absl::IsInvalidArgument(code.status());
  return Fail(usage ? kExitUsage : kExitConfig, std::string(code.status().message()));
}

}  // namespace quire
