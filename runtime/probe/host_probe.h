// What this host can do at this moment: memory bandwidth, arithmetic rates, cost of a barrier.
// Benchmarks print it beside their results, so that ratios can be compared across machines and
// noisy minutes. Owner thread of the pool only; owns one large buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/base/worker_pool.h"
#include "runtime/kernels/onednn/brgemm.h"
#include "runtime/tensor/arena.h"

namespace quire {

struct ProbeResult {
  double dram_gbps = 0;     // 1e9 bytes/s read by all workers together
  double dram_gbps_1t = 0;  // by one worker
  // Per worker, all working: brgemm 32x64x64; 0 if there is none at this level.
  double f32_gflops = 0;
  double u8s8_gops = 0;  // per worker, all working: multiply-add counts as 2; 0 at the scalar level
  double barrier_ns = 0;  // of all workers
  double ghz = 0;         // core clock, one worker
};

struct ProbeOptions {
  size_t buffer_bytes = 0;          // 0 = ChooseProbeBytes of this host
  double seconds_per_value = 0.02;  // at least one round each
};

// Bytes that reach DRAM: beyond the last-level cache, but no more than a quarter of the free memory
// or 1 GiB.
size_t ChooseProbeBytes(uint64_t last_level_cache_bytes, uint64_t free_bytes);

class HostProbe {
 public:
  // Reserves and touches the buffer. The pool outlives the probe. RESOURCE_EXHAUSTED if memory is
  // refused.
  static absl::StatusOr<HostProbe> Create(WorkerPool* pool, const ProbeOptions& options);

  ProbeResult Run();
  double DramGbps();  // the first value alone
  size_t buffer_bytes() const { return buffer_.size(); }

 private:
  HostProbe(WorkerPool* pool, const ProbeOptions& options, Arena buffer);
  double ReadGbps(int32_t readers);
  double F32Gflops();
  double Int8Gops();
  double BarrierNanos();

  WorkerPool* pool_;
  double seconds_;
  Arena buffer_;
  const std::byte* base_ = nullptr;  // start of the buffer
  Brgemm brgemm_;
  bool has_brgemm_ = false;
};

}  // namespace quire
