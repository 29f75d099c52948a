#include "runtime/kernels/kv_append.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/kernels/hadamard.h"
#include "runtime/kernels/kv_append_rows.h"
#include "runtime/kv_cache/kv_pool.h"
#include "runtime/tensor/half.h"

namespace quire {
namespace {

// Of a scaled type, `scale` is that of the element's token.
float Read(const KvLayout& layout, const std::byte* tile, size_t index, uint16_t scale) {
  if (layout.dtype == KvDType::kInt8)
    return static_cast<float>(static_cast<int8_t>(tile[index])) * BFloat16ToFloat(scale);
  if (layout.dtype == KvDType::kInt16) {
    int16_t integer;
    std::memcpy(&integer, tile + 2 * index, 2);
    return static_cast<float>(integer) * BFloat16ToFloat(scale);
  }
  if (layout.dtype == KvDType::kF32) {
    float value;
    std::memcpy(&value, tile + 4 * index, 4);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, tile + 2 * index, 2);
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

float ReadK(const KvLayerView& kv, BlockId block, int32_t head, int32_t token, int32_t dim) {
  return Read(kv.layout, kv.KTile(block, head), kv.layout.KIndex(token, dim),
              kv.layout.scaled() ? kv.KScales(block, head)[token] : uint16_t{0});
}
float ReadV(const KvLayerView& kv, BlockId block, int32_t head, int32_t token, int32_t dim) {
  return Read(kv.layout, kv.VTile(block, head), kv.layout.VIndex(token, dim),
              kv.layout.scaled() ? kv.VScales(block, head)[token] : uint16_t{0});
}

// `value` as stored, an element of `row`.
float Stored(const KvLayout& layout, float value, std::span<const float> row) {
  if (layout.dtype == KvDType::kF32) return value;
  if (layout.dtype == KvDType::kBF16) return BFloat16ToFloat(FloatToBFloat16(value));
  float amax = 0;
  for (float x : row) amax = std::max(amax, std::abs(x));
  const uint32_t bits = std::bit_cast<uint32_t>(amax / static_cast<float>(layout.max_integer()));
  const float scale = std::bit_cast<float>((bits + 0xffff) & 0xffff0000u);
  return std::rint(value * (1 / scale)) * scale;
}

struct Fixture {
  KvPool pool;
  std::vector<KvSlot> slots;
  std::vector<float> k, v;
  int32_t width;
  KvRows rows() const { return {.slots = slots, .k = k.data(), .v = v.data(), .stride = width}; }
};

// Rows at `slots` over a pool of 4 blocks whose bytes are all 0xff: NaN in both types.
Fixture Make(KvDType dtype, int32_t heads, int32_t dim, std::vector<int32_t> slots) {
  Fixture f;
  f.pool = KvPool::Create(KvLayout::Make(dtype, heads, dim), 1, 4).value();
  std::memset(f.pool.Layer(0).data, 0xff, f.pool.layout().block_bytes() * 4);
  for (int32_t slot : slots) f.slots.push_back(KvSlot{slot});
  f.width = heads * dim;
  std::mt19937 rng(5);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < slots.size() * f.width; ++i) {
    f.k.push_back(normal(rng));
    f.v.push_back(normal(rng));
  }
  return f;
}

// A row of K as it becomes elements of the pool.
std::vector<float> KeyRow(const KvLayout& layout, std::span<const float> row) {
  std::vector<float> key(row.begin(), row.end());
  if (layout.scaled()) HadamardInPlace(key.data(), layout.head_dim);
  return key;
}

void ExpectRowsStored(const Fixture& f) {
  const KvLayout& layout = f.pool.layout();
  for (size_t row = 0; row < f.slots.size(); ++row) {
    for (int32_t head = 0; head < layout.num_kv_heads; ++head) {
      const int32_t token = OffsetOf(f.slots[row]);
      const size_t start = row * f.width + head * layout.head_dim;
      const std::vector<float> k = KeyRow(layout, std::span(f.k).subspan(start, layout.head_dim));
      const std::span v = std::span(f.v).subspan(start, layout.head_dim);
      for (int32_t dim = 0; dim < layout.head_dim; ++dim) {
        const BlockId block = BlockOf(f.slots[row]);
        ASSERT_EQ(ReadK(f.pool.Layer(0), block, head, token, dim), Stored(layout, k[dim], k))
            << "row " << row << " dim " << dim;
        ASSERT_EQ(ReadV(f.pool.Layer(0), block, head, token, dim), Stored(layout, v[dim], v))
            << "row " << row << " dim " << dim;
      }
    }
  }
}

TEST(KvAppend, WritesEachRowIntoItsSlot) {
  for (KvDType dtype : {KvDType::kF32, KvDType::kBF16, KvDType::kInt8, KvDType::kInt16}) {
    for (int32_t dim : {32, 40, 64, 80, 128}) {
      std::vector<int32_t> slots;
      for (int32_t i = 0; i < 64; ++i) slots.push_back(2 * 64 + i);  // a whole block
      for (int32_t i = 0; i < 9; ++i) slots.push_back(i);            // the next one, opened
      slots.push_back(3 * 64 + 17);                                  // a decode row
      const Fixture f = Make(dtype, 2, dim, slots);
      AppendKv(f.pool.Layer(0), f.rows(),
               {.row_begin = 0,
                .row_end = static_cast<int32_t>(slots.size()),
                .head_begin = 0,
                .head_end = 2});
      ExpectRowsStored(f);
    }
  }
}

TEST(KvAppend, OpeningABlockZeroesTheValuesItDoesNotWrite) {
  for (KvDType dtype : {KvDType::kF32, KvDType::kBF16, KvDType::kInt8, KvDType::kInt16}) {
    for (int32_t count : {1, 2, 7, 8, 63, 64}) {
      for (int32_t dim : {40, 64, 80}) {
        std::vector<int32_t> slots;
        for (int32_t i = 0; i < count; ++i) slots.push_back(64 + i);
        const Fixture f = Make(dtype, 1, dim, slots);
        AppendKv(f.pool.Layer(0), f.rows(),
                 {.row_begin = 0, .row_end = count, .head_begin = 0, .head_end = 1});
        ExpectRowsStored(f);
        for (int32_t token = count; token < 64; ++token) {
          for (int32_t d = 0; d < dim; ++d) {
            ASSERT_EQ(ReadV(f.pool.Layer(0), BlockId{1}, 0, token, d), 0.0f) << "token " << token;
          }
        }
      }
    }
  }
}

// Any split of rows and heads over workers, in any order, stores the same bytes: no call writes
// what is not its own.
TEST(KvAppend, PartsInAnyOrderStoreTheSameBytes) {
  for (KvDType dtype : {KvDType::kF32, KvDType::kBF16, KvDType::kInt8, KvDType::kInt16}) {
    std::vector<int32_t> slots;
    for (int32_t i = 0; i < 37; ++i) slots.push_back(64 + i);
    const Fixture whole = Make(dtype, 2, 64, slots), parts = Make(dtype, 2, 64, slots);
    AppendKv(whole.pool.Layer(0), whole.rows(),
             {.row_begin = 0, .row_end = 37, .head_begin = 0, .head_end = 2});
    for (int32_t head : {1, 0}) {
      for (int32_t begin : {30, 5, 0, 12, 11}) {
        const int32_t end = begin == 30   ? 37
                            : begin == 5  ? 11
                            : begin == 0  ? 5
                            : begin == 12 ? 30
                                          : 12;
        AppendKv(parts.pool.Layer(0), parts.rows(),
                 {.row_begin = begin, .row_end = end, .head_begin = head, .head_end = head + 1});
      }
    }
    EXPECT_EQ(std::memcmp(whole.pool.Layer(0).data, parts.pool.Layer(0).data,
                          whole.pool.layout().block_bytes() * 4),
              0);
  }
}

TEST(KvAppend, LeavesOtherTokensOfAnOpenBlockAlone) {
  for (KvDType dtype : {KvDType::kF32, KvDType::kBF16, KvDType::kInt8, KvDType::kInt16}) {
    const Fixture f = Make(dtype, 1, 64, {64 + 5, 64 + 6, 64 + 7});
    AppendKv(f.pool.Layer(0), f.rows(),
             {.row_begin = 0, .row_end = 3, .head_begin = 0, .head_end = 1});
    ExpectRowsStored(f);
    for (int32_t token : {0, 4, 8, 63}) {
      EXPECT_TRUE(std::isnan(ReadK(f.pool.Layer(0), BlockId{1}, 0, token, 11)));
      EXPECT_TRUE(std::isnan(ReadV(f.pool.Layer(0), BlockId{1}, 0, token, 11)));
    }
  }
}

// Every upper half with lower halves around the rounding tie, at every vector position and in the
// scalar tail.
TEST(KvAppendRows, EveryInstructionSetRoundsAlike) {
  std::vector<float> values;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (uint32_t lower : {0x0000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  const int32_t count = static_cast<int32_t>(values.size());
  std::vector<uint32_t> expected(count);
  for (int32_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    const uint32_t half = std::isnan(values[i]) ? (bits >> 16 | 0x40) : FloatToBFloat16(values[i]);
    expected[i] = half;
  }
  for (IsaLevel isa : {IsaLevel::kScalar, IsaLevel::kAvx2, IsaLevel::kAvx512}) {
    if (isa > DetectedIsa()) continue;
    const KvAppendRows& rows = KvAppendRowsFor(isa);
    std::vector<uint32_t> packed(count - 1), pairs(count / 2);
    rows.pack_rows(values.data(), values.data() + 1, count - 1, packed.data());
    rows.pack_neighbours(values.data(), count / 2, pairs.data());
    for (int32_t i = 0; i < count - 1; ++i)
      ASSERT_EQ(packed[i], expected[i] | expected[i + 1] << 16) << i;
    for (int32_t i = 0; i < count / 2; ++i)
      ASSERT_EQ(pairs[i], expected[2 * i] | expected[2 * i + 1] << 16) << i;
    std::vector<uint32_t> tail(5, 0);
    rows.pack_neighbours(values.data() + 1000, 3, tail.data());
    EXPECT_EQ(tail[2], expected[1004] | expected[1005] << 16);
    EXPECT_EQ(tail[3], 0u);
  }
}

TEST(KvAppend, RoundsToNearestEvenAndKeepsNaNAndInfinity) {
  Fixture f = Make(KvDType::kBF16, 1, 32, {0});
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<uint32_t> given = {0x3f808000, 0x3f818000, 0x3f808001, 0x7f7fffff,
                                       0x7f800001, 0xffc00000, 0x00000001, 0x80000000};
  for (size_t i = 0; i < given.size(); ++i) f.k[i] = std::bit_cast<float>(given[i]);
  AppendKv(f.pool.Layer(0), f.rows(),
           {.row_begin = 0, .row_end = 1, .head_begin = 0, .head_end = 1});
  const auto at = [&](int32_t dim) { return ReadK(f.pool.Layer(0), BlockId{0}, 0, 0, dim); };
  EXPECT_EQ(at(0), std::bit_cast<float>(0x3f800000));  // tie to even
  EXPECT_EQ(at(1), std::bit_cast<float>(0x3f820000));
  EXPECT_EQ(at(2), std::bit_cast<float>(0x3f810000));
  EXPECT_EQ(at(3), inf);
  EXPECT_TRUE(std::isnan(at(4)));
  EXPECT_TRUE(std::isnan(at(5)));
  EXPECT_EQ(at(6), 0.0f);
  EXPECT_EQ(std::bit_cast<uint32_t>(at(7)), 0x80000000u);
}

// Largest, tiny and non-finite rows; every instruction set alike, at every vector length.
TEST(KvAppendRows, EveryInstructionSetQuantizesAlike) {
  const float inf = std::numeric_limits<float>::infinity();
  const KvAppendRows& scalar = KvAppendRowsFor(IsaLevel::kScalar);
  for (IsaLevel isa : {IsaLevel::kScalar, IsaLevel::kAvx2, IsaLevel::kAvx512}) {
    if (isa > DetectedIsa()) continue;
    const KvAppendRows& rows = KvAppendRowsFor(isa);
    std::mt19937 rng(9);
    std::normal_distribution<float> normal;
    for (int32_t limit : {127, 2047})
      for (int32_t count : {2, 16, 40, 64, 70, 256}) {
        for (float scale : {1.0f, 1e-20f, 1e36f, 1e-31f, 0.0f, 1e-40f}) {
          std::vector<float> x(count);
          for (float& value : x) value = scale * normal(rng);
          std::vector<int16_t> q(count + 1, 99), expected(count + 1, 99);
          const uint16_t got = rows.quantize(x.data(), count, limit, q.data());
          EXPECT_EQ(got, scalar.quantize(x.data(), count, limit, expected.data()));
          EXPECT_EQ(q, expected);
          const float step = BFloat16ToFloat(got);
          EXPECT_EQ(step == 0.0f, scale < 1e-30f) << scale;
          for (int32_t i = 0; i < count && step > 0; ++i)
            EXPECT_LE(std::abs(x[i] - static_cast<float>(q[i]) * step), 0.5001f * step);
          for (float bad : {inf, -inf, std::nanf("")}) {
            x[count - 1] = bad;
            EXPECT_TRUE(
                std::isnan(BFloat16ToFloat(rows.quantize(x.data(), count, limit, q.data()))));
            EXPECT_EQ(std::count(q.begin(), q.end(), 0), count);
          }
        }
      }
  }
}

}  // namespace
}  // namespace quire
