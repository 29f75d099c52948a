#include "server/cli/bench_json.h"

#include <algorithm>

#include "runtime/base/cpu_features.h"
#include "server/cli/bench_runner.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

size_t PanelsBytes(const PackedMatrix& w) {
  return static_cast<size_t>(w.panels()) * w.panel_bytes;
}

struct Work {
  int64_t bytes = 0, macs = 0;
  void Add(const PackedMatrix& w, const StepProfile& p) {
    bytes += static_cast<int64_t>(PanelsBytes(w)) * p.steps;
    macs += int64_t{w.rows} * w.cols * p.rows;
  }
};

Work WorkOf(Phase phase, const ModelWeights& weights, const StepProfile& p) {
  Work work;
  for (const LayerWeights& w : weights.layers) {
    if (phase == Phase::kQkv) {
      for (const PackedMatrix* m : {&w.wq, &w.wk, &w.wv}) work.Add(*m, p);
    } else if (phase == Phase::kOutput) {
      work.Add(w.wo, p);
    } else if (phase == Phase::kGateUp) {
      for (const PackedMatrix* m : {&w.gate, &w.up}) work.Add(*m, p);
    } else if (phase == Phase::kDown) {
      work.Add(w.down, p);
    }
  }
  if (phase == Phase::kAttention) work = {p.kv_bytes, p.attention_macs};
  if (phase == Phase::kLogits) {
    work.bytes =
        static_cast<int64_t>(PanelsBytes(weights.lm_head)) * std::min(p.steps, p.logits_rows);
    work.macs = int64_t{weights.lm_head.rows} * weights.lm_head.cols * p.logits_rows;
  }
  return work;
}

// Per step, summed over layers.
Json PhasesOf(const BenchTiming& timing, const ModelWeights& weights) {
  Json phases = Json::array();
  const double steps = static_cast<double>(std::max<int64_t>(timing.profile.steps, 1));
  for (size_t i = 0; i < kPhaseNames.size(); ++i) {
    const Phase phase = static_cast<Phase>(i);
    const Work work = WorkOf(phase, weights, timing.profile);
    phases.push_back({{"name", kPhaseNames[i]},
                      {"wall_us", timing.profile.Microseconds(phase) / steps},
                      {"bytes", static_cast<double>(work.bytes) / steps},
                      {"ops", 2 * static_cast<double>(work.macs) / steps}});
  }
  for (size_t i = 0; i < kHostPhaseNames.size(); ++i) {
    phases.push_back({{"name", kHostPhaseNames[i]},
                      {"wall_us", static_cast<double>(timing.host_nanos[i]) * 1e-3 / steps},
                      {"bytes", 0},
                      {"ops", 0}});
  }
  return phases;
}

Json CpuJson(const ProbeResult& probe) {
  return {{"model", CpuBrand()},
          {"dram_gbps_1t", probe.dram_gbps_1t},
          {"f32_gflops", probe.f32_gflops},
          {"u8s8_gops", probe.u8s8_gops},
          {"barrier_ns", probe.barrier_ns},
          {"ghz", probe.ghz}};
}

}  // namespace

Json BenchCaseJson(const BenchCase& c, const LoadedModel& model, double dram_gbps) {
  Json all = Json::array();
  for (const BenchTiming& run : c.runs) all.push_back(run.TokensPerSecond());
  const BenchTiming& timing = c.Median();
  std::vector<int64_t> steps = timing.step_nanos;
  std::ranges::sort(steps);
  const auto quantile_us = [&](double q) {
    return static_cast<double>(QuantileOf(steps, q)) * 1e-3;
  };
  Json json = {
      {"kind", c.kind},
      {"batch", c.batch},
      {"prompt", c.prompt},
      {"gen", c.gen},
      {"tok_s", {{"median", timing.TokensPerSecond()}, {"best", all.back()}, {"all", all}}},
      {"step_us", {{"p50", quantile_us(0.5)}, {"p99", quantile_us(0.99)}}}};
  if (c.kind == "prefill") {
    json["ttft_us"] = timing.seconds * 1e6;
  } else {
    const double kv =
        static_cast<double>(timing.profile.kv_bytes) / static_cast<double>(timing.profile.steps);
    const double bytes = static_cast<double>(model.weights.bytes_per_token) + kv;
    json["limit_tok_s"] = dram_gbps * 1e9 * c.batch / bytes;
    json["pct_limit"] = 100 * timing.TokensPerSecond() * bytes / (dram_gbps * 1e9 * c.batch);
  }
  json["phases"] = PhasesOf(timing, model.weights);
  return json;
}

Json SharedPrefixJson(const SharedPrefixCase& shape, const SharedPrefixResult& result) {
  return {{"batch", shape.batch},
          {"prefix", shape.prefix_tokens},
          {"tail", shape.tail_tokens},
          {"gen", shape.output_tokens},
          {"shared_tok_s", result.shared_tok_s},
          {"apart_tok_s", result.apart_tok_s},
          {"first_token_ms",
           {{"apart", 1e3 * result.apart_first_s},
            {"shared", 1e3 * result.shared_first_s},
            {"tail_alone", 1e3 * result.tail_first_s}}}};
}

Json BenchResultJson(const std::vector<BenchCase>& cases, const LoadedModel& model,
                     const ProbeResult& probe) {
  Json result = {
      {"prefill_tps", nullptr}, {"decode_tps", Json::object()}, {"dram_gbps", probe.dram_gbps}};
  const double limit = probe.dram_gbps * 1e9 / static_cast<double>(model.weights.bytes_per_token);
  result["limit_tps"] = limit;
  result["limit_fraction"] = nullptr;
  for (const BenchCase& c : cases) {
    const double tps = c.Median().TokensPerSecond();
    if (c.kind == "prefill") result["prefill_tps"] = tps;
    if (c.kind == "decode") result["decode_tps"][std::to_string(c.batch)] = tps;
    if (c.kind == "decode" && c.batch == 1) result["limit_fraction"] = tps / limit;
  }
  result["cpu"] = CpuJson(probe);
  return result;
}

}  // namespace quire
