#include "tests/runtime/kernels/quant_blocks.h"

#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <random>

#include "absl/log/check.h"

namespace quire {
namespace {

constexpr size_t kPage = 4096;

void PutHalf(std::byte* at, uint16_t half) { std::memcpy(at, &half, sizeof half); }

uint16_t DrawScale(BlockKind kind, std::mt19937_64& rng) {
  static constexpr uint16_t kExtreme[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff, 0x2c00};
  if (kind == BlockKind::kExtremeScales) return kExtreme[rng() % std::size(kExtreme)];
  return static_cast<uint16_t>(0x2000 + rng() % 0x0400 + ((rng() & 1) << 15));  // +-0.008 .. 0.016
}

void FillFloats(DType type, std::vector<std::byte>& data, std::mt19937_64& rng) {
  std::normal_distribution<float> normal(0.0f, 0.05f);
  const size_t size = static_cast<size_t>(TraitsOf(type).block_bytes);
  for (size_t at = 0; at < data.size(); at += size) {
    uint32_t bits = std::bit_cast<uint32_t>(normal(rng));
    if (type == DType::kF16)
      bits = static_cast<uint32_t>(0x1c00 + rng() % 0x1400 + ((rng() & 1) << 15));
    if (type == DType::kBF16) bits >>= 16;
    std::memcpy(data.data() + at, &bits, size);
  }
}

}  // namespace

BlockLayout BlockLayoutOf(DType type) {
  switch (type) {
    case DType::kQ4_0:
      return {.d_at = 0, .codes_at = 2, .codes_bytes = 16};
    case DType::kQ4_1:
      return {.d_at = 0, .min_at = 2, .codes_at = 4, .codes_bytes = 16};
    case DType::kQ5_0:
      return {.d_at = 0, .high_at = 2, .high_bytes = 4, .codes_at = 6, .codes_bytes = 16};
    case DType::kQ5_1:
      return {
          .d_at = 0, .min_at = 2, .high_at = 4, .high_bytes = 4, .codes_at = 8, .codes_bytes = 16};
    case DType::kQ8_0:
      return {.d_at = 0, .codes_at = 2, .codes_bytes = 32};
    case DType::kQ4_K:
      return {.d_at = 0,
              .min_at = 2,
              .scales_at = 4,
              .scales_bytes = 12,
              .codes_at = 16,
              .codes_bytes = 128};
    case DType::kQ5_K:
      return {.d_at = 0,
              .min_at = 2,
              .scales_at = 4,
              .scales_bytes = 12,
              .high_at = 16,
              .high_bytes = 32,
              .codes_at = 48,
              .codes_bytes = 128};
    case DType::kQ6_K:
      return {.d_at = 208,
              .scales_at = 192,
              .scales_bytes = 16,
              .high_at = 128,
              .high_bytes = 64,
              .codes_at = 0,
              .codes_bytes = 128};
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      break;
  }
  return {};
}

std::vector<std::byte> RandomBlocks(DType type, int32_t rows, int32_t cols, BlockKind kind,
                                    uint64_t seed) {
  std::mt19937_64 rng(seed * 1000003 + static_cast<uint64_t>(type));
  std::vector<std::byte> data(RowBytes(type, cols) * static_cast<size_t>(rows));
  const BlockLayout layout = BlockLayoutOf(type);
  if (layout.d_at < 0) {
    FillFloats(type, data, rng);
    return data;
  }
  for (std::byte& b : data) b = static_cast<std::byte>(rng());
  const size_t size = static_cast<size_t>(TraitsOf(type).block_bytes);
  for (size_t at = 0; at < data.size(); at += size) {
    std::byte* block = data.data() + at;
    PutHalf(block + layout.d_at, DrawScale(kind, rng));
    if (layout.min_at >= 0) PutHalf(block + layout.min_at, DrawScale(kind, rng));
    if (kind != BlockKind::kLargestCodes && kind != BlockKind::kSmallestCodes) continue;
    // Q8_0 is signed: its largest magnitude is -128.
    const int fill = kind == BlockKind::kSmallestCodes ? 0x00 : type == DType::kQ8_0 ? 0x80 : 0xff;
    std::memset(block + layout.codes_at, fill, static_cast<size_t>(layout.codes_bytes));
    std::memset(block + layout.high_at, fill, static_cast<size_t>(layout.high_bytes));
  }
  return data;
}

GuardedBuffer::GuardedBuffer(size_t size) : size_(size) {
  const size_t pages = (size + kPage - 1) / kPage;
  mapping_size_ = (pages + 2) * kPage;
  void* m = mmap(nullptr, mapping_size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(m != MAP_FAILED);
  mapping_ = static_cast<std::byte*>(m);
  if (pages != 0) CHECK_EQ(mprotect(mapping_ + kPage, pages * kPage, PROT_READ | PROT_WRITE), 0);
  start_ = mapping_ + kPage + pages * kPage - size;
}

GuardedBuffer::~GuardedBuffer() { munmap(mapping_, mapping_size_); }

PackedWeights::PackedWeights(DType type, int32_t rows, int32_t cols,
                             std::span<const std::byte> file)
    : memory(PackedBytes(type, rows, cols)) {
  matrix = {.type = type,
            .rows = rows,
            .cols = cols,
            .panel_bytes = PanelBytes(type, cols),
            .data = memory.bytes().data()};
  PackPanels(file, matrix, 0, matrix.panels(), memory.bytes().data());
}

std::vector<uint32_t> BitsOf(std::span<const float> values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size_bytes());
  return bits;
}

}  // namespace quire
