#include "runtime/kernels/linear.h"

#include <algorithm>
#include <cstring>

#include "absl/log/check.h"
#include "runtime/kernels/panel.h"

// Kernels write whole panels of 16 columns. A last panel with fewer rows goes through scratch, a
// few activation rows at a time, so that nothing beyond the matrix's outputs is written.
namespace quire {
namespace {

constexpr int32_t kTailRows = 64;
constexpr size_t kTailBytes = kTailRows * kPanelRows * sizeof(float);

PanelFn KernelOf(const LinearKernels& kernels, DType type) {
  switch (type) {
    case DType::kF32:
      return kernels.f32;
    case DType::kF16:
      return kernels.f16;
    case DType::kBF16:
      return kernels.bf16;
    case DType::kQ4_0:
      return kernels.q4_0;
    case DType::kQ4_1:
      return kernels.q4_1;
    case DType::kQ5_0:
      return kernels.q5_0;
    case DType::kQ5_1:
      return kernels.q5_1;
    case DType::kQ8_0:
      return kernels.q8_0;
    case DType::kQ4_K:
      return kernels.q4_k;
    case DType::kQ5_K:
      return kernels.q5_k;
    case DType::kQ6_K:
      return kernels.q6_k;
  }
  return nullptr;
}

PanelJob JobOf(const PackedMatrix& w, int32_t panel_begin, int32_t panels, const ActRows& x) {
  return {.w = reinterpret_cast<const uint8_t*>(w.panel(panel_begin)),
          .next = nullptr,
          .panel_bytes = static_cast<int64_t>(w.panel_bytes),
          .panels = panels,
          .cols = w.cols,
          .rows = x.rows,
          .q = x.q,
          .q_stride = x.q_stride,
          .scales = x.scales,
          .scale_stride = x.scale_stride,
          .x = x.f32,
          .x_stride = x.f32_stride,
          .y = nullptr,
          .y_stride = 0,
          .scratch = nullptr};
}

}  // namespace

size_t LinearScratchBytes() { return kPanelScratchBytes + kTailBytes; }

const LinearKernels& LinearKernelsOf(IsaLevel isa) {
#if defined(__x86_64__)
  if (isa >= IsaLevel::kAvx512) return kLinearAvx512;
  if (isa >= IsaLevel::kAvx2) return kLinearAvx2;
#endif
  (void)isa;
  return kLinearScalar;
}

void LinearWith(const LinearKernels& kernels, const LinearCall& call) {
  const auto& [w, panels, x, out, scratch] = call;
  DCHECK_EQ(w.cols, x.cols);
  DCHECK(panels.begin >= 0 && panels.end <= w.panels());
  DCHECK_GE(scratch.size(), LinearScratchBytes());
  DCHECK(UsesQuantizedActivations(w.type) ? x.q != nullptr : x.f32 != nullptr);
  if (panels.begin >= panels.end || x.rows <= 0) return;
  const PanelFn kernel = KernelOf(kernels, w.type);
  auto* panel_scratch = reinterpret_cast<uint8_t*>(scratch.data());
  const int32_t whole = std::min(panels.end, w.rows / kPanelRows);
  if (whole > panels.begin) {
    PanelJob job = JobOf(w, panels.begin, whole - panels.begin, x);
    job.y = out.y + int64_t{panels.begin} * kPanelRows;
    job.y_stride = out.stride;
    job.scratch = panel_scratch;
    job.next = reinterpret_cast<const uint8_t*>(panels.next);
    kernel(job);
  }
  if (whole >= panels.end) return;
  const int32_t column = whole * kPanelRows, columns = w.rows - column;
  auto* tail = reinterpret_cast<float*>(scratch.data() + kPanelScratchBytes);
  for (int32_t row = 0; row < x.rows; row += kTailRows) {
    const int32_t count = std::min(kTailRows, x.rows - row);
    PanelJob job = JobOf(w, whole, 1, x.Slice(row, count));
    job.y = tail;
    job.y_stride = kPanelRows;
    job.scratch = panel_scratch;
    kernel(job);
    for (int32_t r = 0; r < count; ++r) {
      std::memcpy(out.y + (row + r) * out.stride + column, tail + r * kPanelRows,
                  static_cast<size_t>(columns) * sizeof(float));
    }
  }
}

void Linear(const PackedMatrix& w, PanelRange panels, const ActRows& x, const LinearOutput& out,
            std::span<std::byte> scratch) {
  static const LinearKernels& kernels = LinearKernelsOf(ActiveIsa());
  LinearWith(kernels, {w, panels, x, out, scratch});
}

}  // namespace quire
