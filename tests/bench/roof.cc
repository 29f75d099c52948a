#include "tests/bench/roof.h"

#include <algorithm>

#include "absl/log/check.h"
#include "runtime/probe/host_probe.h"

namespace quire {
namespace {

ProbeResult Measure() {
  WorkerPool pool({.threads = 1, .pin = false});
  absl::StatusOr<HostProbe> probe = HostProbe::Create(&pool, {});
  CHECK_OK(probe);
  return probe->Run();
}

}  // namespace

void ReportWork(benchmark::State& state, double ops, double bytes, Arithmetic arithmetic) {
  static const ProbeResult roof = Measure();
  const double peak = 1e9 * (arithmetic == Arithmetic::kInt8 ? roof.u8s8_gops : roof.f32_gflops);
  const double seconds = std::max(peak > 0 ? ops / peak : 0, bytes / (1e9 * roof.dram_gbps_1t));
  const auto count = static_cast<double>(state.iterations());
  const auto rate = [&](double amount) {
    return benchmark::Counter(amount * count, benchmark::Counter::kIsRate);
  };
  state.counters["GOPS"] = rate(ops * 1e-9);
  state.counters["GBps"] = rate(bytes * 1e-9);
  state.counters["of_roof"] = rate(seconds);
}

}  // namespace quire
