#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/cgroup_limits.h"
#include "runtime/base/clock.h"
#include "runtime/base/cpu_features.h"
#include "runtime/base/status_macros.h"
#include "runtime/loader/model_loader.h"
#include "runtime/probe/host_probe.h"
#include "server/cli/bench_baseline.h"
#include "server/cli/bench_engine.h"
#include "server/cli/bench_fit.h"
#include "server/cli/bench_flags.h"
#include "server/cli/bench_itl.h"
#include "server/cli/bench_json.h"
#include "server/cli/bench_shared_prefix.h"
#include "server/cli/commands.h"

// `quire bench`: the engine without gRPC, on random prompts. Every case runs `repetitions` times
// and its median counts. The last line of standard output is one JSON object.
namespace quire {
namespace {

using Json = nlohmann::ordered_json;

int64_t PeakRssBytes() {
  rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? int64_t{usage.ru_maxrss} * 1024 : 0;
}

void Run(BenchCase* c, int32_t repetitions, const std::function<BenchTiming()>& run) {
  for (int32_t i = 0; i < repetitions; ++i) c->runs.push_back(run());
  std::ranges::sort(c->runs, {}, &BenchTiming::TokensPerSecond);
  std::fprintf(stderr, "bench: %s batch %d: %.1f tokens/s\n", c->kind.c_str(), c->batch,
               c->Median().TokensPerSecond());
}

std::vector<BenchCase> RunCases(const BenchFlags& flags, BenchEngine& engine) {
  std::vector<BenchCase> cases;
  (void)engine.Decode(1, 8, 8);  // warm-up: first touches of weights
  if (flags.prefill_tokens > 0) {
    BenchCase& c = cases.emplace_back("prefill", 1, flags.prefill_tokens, 1);
    Run(&c, flags.repetitions, [&] { return engine.Prefill(flags.prefill_tokens); });
  }
  for (const int32_t batch : flags.batches) {
    BenchCase& c = cases.emplace_back("decode", batch, flags.prompt_tokens, flags.output_tokens);
    Run(&c, flags.repetitions,
        [&] { return engine.Decode(batch, flags.prompt_tokens, flags.output_tokens); });
  }
  return cases;
}

absl::Status Bench(const BenchFlags& flags) {
  const int32_t threads = flags.threads > 0 ? flags.threads : ReadHostLimits().Threads();
  WorkerPool pool({.threads = threads});
  const SteadyClock clock;
  const MonotonicTime begin = clock.Now();
  ASSIGN_OR_RETURN(const LoadedModel model,
                   LoadModel(flags.model, {.pool = &pool, .progress = nullptr}));
  pool.PinOwner();
  if (!flags.fit_cost.empty()) {
    return FitStepCost(model, &pool,
                       {.model_path = flags.model,
                        .out_path = flags.fit_cost,
                        .threads = threads,
                        .grid = {.step_tokens = flags.step_tokens,
                                 .passes = flags.repetitions,
                                 .kv_dtype = flags.DType()}});
  }
  const int64_t needed = flags.LongestSequence() + 1;
  if (needed > model.config.context_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("the model's context is ",
                                                   model.config.context_tokens,
                                                   " tokens, the bench needs ", needed));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> engine,
                   BenchEngine::Create(model, &pool, flags.Engine()));
  const double load_s = SecondsBetween(begin, clock.Now());
  const std::vector<BenchCase> cases = RunCases(flags, *engine);
  Json itl;
  if (flags.itl.target_itl_ms > 0) {
    ASSIGN_OR_RETURN(itl, BenchItl(model, &pool, flags.Engine(), flags.Itl()));
  }
  SharedPrefixResult shared;
  if (flags.shared_prefix > 0) shared = MeasureSharedPrefix(*engine, flags.SharedPrefix());
  const int64_t peak_rss = PeakRssBytes();  // before the probe takes its buffer
  ASSIGN_OR_RETURN(HostProbe probe, HostProbe::Create(&pool, {}));
  const ProbeResult host = probe.Run();

  Json result = BenchResultJson(cases, model, host);
  result["isa"] = IsaName(ActiveIsa());
  result["threads"] = threads;
  result["kv_dtype"] = flags.kv_dtype;
  result["load_s"] = load_s;
  result["peak_rss_bytes"] = peak_rss;
  if (!itl.is_null()) result["itl_beside_prompt"] = itl;
  if (flags.shared_prefix > 0) {
    result["shared_prefix_ratio"] = shared.ratio();
    result["shared_prefix"] = SharedPrefixJson(flags.SharedPrefix(), shared);
  }
  result["cases"] = Json::array();
  for (const BenchCase& c : cases)
    result["cases"].push_back(BenchCaseJson(c, model, host.dram_gbps));
  std::printf("%s\n", result.dump().c_str());
  return absl::OkStatus();
}

// The arguments of one run of either build.
Args WithoutBaseline(const Args& args) {
  Args out;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string name = args[i].substr(0, args[i].find('='));
    if (name != "--baseline" && name != "--tolerance" && name != "--repetitions") {
      out.push_back(args[i]);
    } else if (name == args[i]) {
      ++i;
    }
  }
  for (const char* a : {"--repetitions", "1"}) out.push_back(a);
  return out;
}

int Compare(const BenchFlags& flags, const Args& args) {
  BaselineOptions options = flags.baseline;
  options.rounds = flags.repetitions;
  const absl::StatusOr<BaselineVerdict> verdict =
      CompareWithBaseline(options, WithoutBaseline(args));
  if (!verdict.ok()) return Fail(kExitConfig, std::string(verdict.status().message()));
  std::printf("%s\n", verdict->json.c_str());
  if (verdict->worst_ratio >= 1 - options.tolerance) return kExitOk;
  return Fail(kExitFailed, absl::StrCat("slower than the baseline: ", verdict->worst_ratio,
                                        " of its speed, tolerance ", options.tolerance));
}

}  // namespace

int RunBench(const Args& args) {
  BenchFlags flags;
  CLI::App app("Measures prefill and decode speed of a model on this host, without a server.",
               "quire bench");
  flags.AddTo(app);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kExitOk : kExitUsage;
  }
  if (const absl::Status isa = CheckIsaEnvironment(); !isa.ok())
    return Fail(kExitConfig, std::string(isa.message()));
  if (!flags.baseline.other.empty()) return Compare(flags, args);
  const absl::Status status = Bench(flags);
  return status.ok() ? kExitOk : Fail(kExitConfig, std::string(status.message()));
}

}  // namespace quire
