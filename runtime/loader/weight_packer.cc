#include "runtime/loader/weight_packer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/kernels/pack.h"

// Each worker packs its own contiguous range of a matrix's panels, the range that it also reads in
// the linear kernels, so pages land near the core that uses them. It reads whole panels of rows
// into a buffer of its own: panels do not depend on each other, so a buffer of rows packs as a
// small matrix.
namespace quire {
namespace {

constexpr size_t kBufferBytes = 1 << 20;  // wished for; at least one panel of rows

size_t RowBytes(const PackedMatrix& m) {
  const DTypeTraits& t = TraitsOf(m.type);
  return static_cast<size_t>(m.cols / t.block_elements) * static_cast<size_t>(t.block_bytes);
}

absl::Status NonFiniteError(const ModelFile& file, const GgufTensor& tensor, uint64_t block) {
  const DTypeTraits& t = TraitsOf(tensor.type);
  return file.Error(
      absl::StrCat("tensor ", tensor.name, ": found NaN or infinity at or after element ",
                   block * static_cast<uint64_t>(t.block_elements), ", expected finite weights"));
}

absl::Status PackRange(const ModelFile& file, const WeightPlan::Entry& entry, IndexRange panels,
                       std::vector<std::byte>& buffer, std::byte* dst) {
  const PackedMatrix& m = *entry.matrix;
  const size_t row_bytes = RowBytes(m);
  const auto block_bytes = static_cast<uint64_t>(TraitsOf(m.type).block_bytes);
  const auto step = static_cast<int32_t>(
      std::max<size_t>(1, buffer.size() / (row_bytes * static_cast<size_t>(kPanelRows))));
  for (int32_t p = panels.begin; p < panels.end; p += step) {
    const int32_t end = std::min(p + step, panels.end);
    const int32_t row = p * kPanelRows;
    const int32_t rows = std::min(end * kPanelRows, m.rows) - row;
    const uint64_t at = static_cast<uint64_t>(row) * row_bytes;
    const std::span<std::byte> src(buffer.data(), static_cast<size_t>(rows) * row_bytes);
    if (absl::Status status = file.ReadAt(entry.tensor->begin + at, src); !status.ok())
      return status;
    if (const auto block = FindNonFinite(m.type, src)) {
      return NonFiniteError(file, *entry.tensor, at / block_bytes + *block);
    }
    PackedMatrix part = m;
    part.rows = rows;
    PackPanels(src, part, 0, end - p, dst + static_cast<size_t>(p) * m.panel_bytes);
  }
  return absl::OkStatus();
}

absl::Status PackMatrix(const ModelFile& file, const WeightPlan::Entry& entry, Arena& arena,
                        WorkerPool& pool, std::vector<std::vector<std::byte>>& buffers) {
  PackedMatrix& m = *entry.matrix;
  std::byte* dst = arena.Take(PackedBytes(m.type, m.rows, m.cols)).data();
  const size_t least = RowBytes(m) * static_cast<size_t>(kPanelRows);
  for (std::vector<std::byte>& buffer : buffers) buffer.resize(std::max(least, kBufferBytes));
  std::vector<absl::Status> statuses(buffers.size());
  pool.Run([&](int32_t worker) {
    const auto w = static_cast<size_t>(worker);
    statuses[w] =
        PackRange(file, entry, SplitEvenly(m.panels(), worker, pool.size()), buffers[w], dst);
  });
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  m.data = dst;
  return absl::OkStatus();
}

absl::Status ReadVector(const ModelFile& file, const WeightPlan::Entry& entry, Arena& arena) {
  const GgufTensor& tensor = *entry.tensor;
  const auto count = static_cast<size_t>(tensor.dims[0]);
  std::vector<std::byte> raw(tensor.bytes);
  if (absl::Status status = file.ReadAt(tensor.begin, raw); !status.ok()) return status;
  if (const auto at = FindNonFinite(tensor.type, raw)) return NonFiniteError(file, tensor, *at);
  const std::span<float> out = arena.TakeArray<float>(count);
  DequantizeBlocks(tensor.type, raw.data(), static_cast<int64_t>(count), out.data());
  *entry.vector = out;
  return absl::OkStatus();
}

// Where a block keeps its f16 scales; the rest of a quantised block is finite whatever its bits.
struct ScalePlaces {
  size_t first, count;
};
ScalePlaces ScalesOf(DType type) {
  switch (type) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ6_K:
      return {208, 1};
    default:
      return {0, 1};
  }
}

uint16_t HalfAt(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return bits;
}

// f16 and bf16 are finite unless all exponent bits are set.
template <uint16_t kExponent>
std::optional<uint64_t> FindNonFiniteHalf(std::span<const std::byte> data, size_t stride,
                                          ScalePlaces places) {
  const size_t count = data.size() / stride;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* block = data.data() + i * stride + places.first;
    bool bad = false;
    for (size_t s = 0; s < places.count; ++s)
      bad |= (HalfAt(block + 2 * s) & kExponent) == kExponent;
    if (bad) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> FindNonFinite(DType type, std::span<const std::byte> blocks) {
  if (type == DType::kBF16) return FindNonFiniteHalf<0x7f80>(blocks, 2, {0, 1});
  if (type == DType::kF32)
    return FindNonFiniteHalf<0x7f80>(blocks, 4, {2, 1});  // its upper half is a bf16
  return FindNonFiniteHalf<0x7c00>(blocks, static_cast<size_t>(TraitsOf(type).block_bytes),
                                   ScalesOf(type));
}

absl::Status PackWeights(const ModelFile& file, const WeightPlan& plan, Arena& arena,
                         WorkerPool& pool,
                         const std::function<void(size_t done, size_t total)>& progress) {
  std::vector<std::vector<std::byte>> buffers(static_cast<size_t>(pool.size()));
  size_t total = 0, done = 0;
  for (const WeightPlan::Entry& entry : plan.entries) total += entry.tensor->bytes;
  for (const WeightPlan::Entry& entry : plan.entries) {
    const absl::Status status = entry.matrix != nullptr
                                    ? PackMatrix(file, entry, arena, pool, buffers)
                                    : ReadVector(file, entry, arena);
    if (!status.ok()) return status;
    done += entry.tensor->bytes;
    if (progress) progress(done, total);
  }
  return absl::OkStatus();
}

}  // namespace quire
