// Every quire_* family, made at scrape time from plain snapshots of the other rooms: no lock of the
// engine is taken and nothing is counted here. Collect: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "runtime/base/clock.h"
#include "server/delivery/stream_stats.h"
#include "server/engine/step_stats.h"

namespace quire {

// What does not change while the process runs.
struct MetricsInfo {
  std::string version{}, revision{}, isa{}, numeric_id{};
  std::string model{}, architecture{}, quantization{}, kv_dtype{};
  int32_t context_tokens = 0, num_blocks = 0, threads = 0;
  int64_t weights_bytes = 0, kv_bytes = 0, scratch_bytes = 0, text_bytes = 0;
  int64_t memory_limit_bytes = 0;  // cgroup or RAM
};

// Ended calls by final code; the source lists every series it will ever have, zeros too.
struct CallCount {
  std::string api, method, code;  // "quire", "Generate", "OK"
  uint64_t count = 0;
};

// Where numbers come from; called at each scrape, from any thread. Unset: zeros. Before the engine
// exists (loading) the sources give default values.
struct MetricsSources {
  std::function<StreamStats()> streams{};
  std::function<StepStats()> steps{};
  std::function<IntakeStats()> intake{};
  std::function<std::vector<CallCount>()> calls{};
  std::function<int64_t()> pulse_age_ns{};
  std::function<bool()> ready{}, draining{};
  std::function<uint64_t()> watchdog_stalls{}, log_lines_dropped{};
};

class Metrics final : public prometheus::Collectable {
 public:
  Metrics(MetricsInfo info, MetricsSources sources);
  std::vector<prometheus::MetricFamily> Collect() const override;
  std::string Text() const;      // exposition format
  std::string LoadText() const;  // only what a router needs: /metrics/load

 private:
  const MetricsInfo info_;
  const MetricsSources sources_;
};

}  // namespace quire
