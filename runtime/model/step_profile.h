// Where the time of a step goes, phase by phase, seen by worker 0. Off unless a bench asks for it.
// Engine thread only; a plain value.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace quire {

enum class Phase : uint8_t {
  kEmbed,
  kNorm,
  kQkv,
  kRope,
  kAttention,
  kOutput,
  kGateUp,
  kDown,
  kLogits
};
inline constexpr std::array<std::string_view, 9> kPhaseNames = {
    "embed",    "norm_quantize", "qkv",  "rope_append", "attention",
    "out_proj", "gate_up",       "down", "lm_head"};

struct StepProfile {
  std::array<int64_t, kPhaseNames.size()> ticks{};  // of the time-stamp counter
  int64_t step_ticks = 0, step_nanos = 0;           // of whole steps, to turn ticks into time
  int64_t steps = 0, rows = 0, logits_rows = 0;
  int64_t attention_macs = 0, kv_bytes = 0;  // over all layers

  double Microseconds(Phase phase) const {
    if (step_ticks == 0) return 0;
    const double nanos_per_tick = static_cast<double>(step_nanos) / static_cast<double>(step_ticks);
    return static_cast<double>(ticks[static_cast<size_t>(phase)]) * nanos_per_tick * 1e-3;
  }
};

// Adds the time since the last lap to a phase. Without a profile it does nothing.
class PhaseTimer {
 public:
  explicit PhaseTimer(StepProfile* profile)
      : profile_(profile),
        last_(profile == nullptr ? 0 : static_cast<int64_t>(__builtin_ia32_rdtsc())) {}

  void Lap(Phase phase) {
    if (profile_ == nullptr) return;
    const int64_t now = static_cast<int64_t>(__builtin_ia32_rdtsc());
    profile_->ticks[static_cast<size_t>(phase)] += now - last_;
    last_ = now;
  }

 private:
  StepProfile* profile_;
  int64_t last_;
};

}  // namespace quire
