#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "scheduler/simulate/report_table.h"
#include "scheduler/simulate/result_plot.h"
#include "server/cli/commands.h"
#include "server/cli/counted.h"
#include "server/cli/simulate_flags.h"
#include "server/cli/simulate_json.h"
#include "server/cli/simulate_plan.h"
#include "server/cli/text_file.h"

// `quire simulate`: the production scheduler on virtual time, to plan capacity before buying
// machines.
namespace quire {
namespace {

using Json = nlohmann::ordered_json;

double GoodPerSecond(const SimulationResult& result) {
  return static_cast<double>(result.all().good) / std::max(result.seconds, 1e-9);
}

std::string TrafficLine(const Answer& answer, const SimulateFlags& flags) {
  return absl::StrFormat("%s in %.1f s (%.4g/s) %s, %s, %s",
                         Counted(answer.result.all().arrived, "request"),
                         answer.result.offered_seconds, answer.rate,
                         flags.trace.empty() ? "generated" : "from a trace",
                         Counted(std::ssize(answer.result.replicas), "replica"), flags.routing);
}

std::string CostLine(const CostFile& cost) {
  return absl::StrFormat("%s on %s, %s, %s, %s KV", cost.model, cost.cpu, cost.isa,
                         Counted(cost.threads, "thread"), cost.kv_dtype);
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
                          Counted(std::ssize(result.replicas), "replica"));
  } else if (answer.found_replicas.has_value()) {
    absl::StrAppendFormat(&text, "capacity    %s for %.4g requests/s\n",
                          Counted(*answer.found_replicas, "replica"), answer.rate);
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
  json["idle"] = nullptr;
  if (answer.idle.has_value()) {
    json["idle"] = GroupsJson(answer.idle->groups)[0];
    json["idle"]["attainment"] = answer.idle->Attainment();
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
  const Answer answer = PlanCapacity(flags, options, cost, traffic);
  if (!flags.plot.empty()) {
    RETURN_IF_ERROR(WriteTextFile(
        flags.plot, ResultPlot(answer.result, TrafficLine(answer, flags), CostLine(cost))));
  }
  (flags.json ? PrintJson : PrintTables)(answer, flags, cost);
  return answer.missed.empty() ? kExitOk : Fail(kExitFailed, answer.missed);
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
