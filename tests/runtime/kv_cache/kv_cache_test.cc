// Layout, pool and block copies of the paged KV cache.
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/kv_cache/block_copy.h"
#include "runtime/kv_cache/kv_layout.h"
#include "runtime/kv_cache/kv_pool.h"

namespace quire {
namespace {

TEST(KvLayout, EachElementHasItsOwnPlaceInTheTile) {
  for (KvDType dtype : {KvDType::kF32, KvDType::kBF16, KvDType::kInt8, KvDType::kInt16}) {
    for (int32_t dim : {2, 32, 40, 64, 80, 96, 128, 256}) {
      const KvLayout layout = KvLayout::Make(dtype, 2, dim);
      std::set<size_t> k, v;
      for (int32_t token = 0; token < kBlockTokens; ++token) {
        for (int32_t d = 0; d < dim; ++d) {
          k.insert(layout.KIndex(token, d));
          v.insert(layout.VIndex(token, d));
        }
      }
      EXPECT_EQ(k.size(), layout.tile_elements());
      EXPECT_EQ(v.size(), layout.tile_elements());
      EXPECT_EQ(*k.rbegin(), layout.tile_elements() - 1);
      EXPECT_EQ(*v.rbegin(), layout.tile_elements() - 1);
    }
  }
}

TEST(KvLayout, PairsAreTheReducedDimension) {
  constexpr KvLayout kBf16 = KvLayout::Make(KvDType::kBF16, 1, 80);
  static_assert(kBf16.KIndex(5, 6) + 1 == kBf16.KIndex(5, 7));  // dims of one token
  static_assert(kBf16.VIndex(6, 5) + 1 == kBf16.VIndex(7, 5));  // tokens of one dim
  static_assert(kBf16.VIndex(0, 64) == 64 * 64);                // second panel, 16 dims wide
  static_assert(kBf16.num_panels() == 2 && kBf16.PanelWidth(1) == 16);
  constexpr KvLayout kF32 = KvLayout::Make(KvDType::kF32, 1, 64);
  static_assert(kF32.KIndex(5, 6) == 6 * 64 + 5 && kF32.VIndex(5, 6) == 5 * 64 + 6);
  EXPECT_EQ(kBf16.bytes_per_token(), 2u * 80 * 2);
  EXPECT_EQ(kF32.block_bytes(), 2u * 64 * 64 * 4);
  constexpr KvLayout kInt8 = KvLayout::Make(KvDType::kInt8, 1, 80);
  static_assert(kInt8.VIndex(6, 5) + 1 == kInt8.VIndex(7, 5));
  EXPECT_EQ(kInt8.bytes_per_token(), 2u * 80 + 4);
}

TEST(KvLayout, SmolLm2BlockHasTheDocumentedSize) {
  EXPECT_EQ(KvLayout::Make(KvDType::kBF16, 3, 64).block_bytes() * 30, 1474560u);
  EXPECT_EQ(KvLayout::Make(KvDType::kInt8, 3, 64).block_bytes() * 30, 760320u);
}

TEST(KvLayout, ScalesLieBehindTheTilesOfTheirHead) {
  const KvLayout layout = KvLayout::Make(KvDType::kInt8, 2, 48);
  const KvPool pool = KvPool::Create(layout, 1, 2).value();
  const KvLayerView kv = pool.Layer(0);
  const auto address = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  EXPECT_EQ(address(kv.KScales(BlockId{1}, 0)), address(kv.VTile(BlockId{1}, 0)) + 64 * 48);
  EXPECT_EQ(address(kv.VScales(BlockId{1}, 0)), address(kv.KScales(BlockId{1}, 0) + 64));
  EXPECT_EQ(address(kv.KTile(BlockId{1}, 1)), address(kv.VScales(BlockId{1}, 0) + 64));
}

TEST(KvPool, IsZeroAlignedAndDisjoint) {
  const KvLayout layout = KvLayout::Make(KvDType::kBF16, 3, 64);
  const KvPool pool = KvPool::Create(layout, 4, 5).value();
  EXPECT_GE(pool.bytes(), KvPool::Bytes(layout, 4, 5));
  EXPECT_EQ(KvPool::Bytes(layout, 4, 5), 4 * 5 * layout.block_bytes());
  std::set<const std::byte*> tiles;
  for (int32_t layer = 0; layer < pool.num_layers(); ++layer) {
    for (int32_t block = 0; block < pool.num_blocks(); ++block) {
      for (int32_t head = 0; head < 3; ++head) {
        tiles.insert(pool.Layer(layer).KTile(BlockId{block}, head));
        tiles.insert(pool.Layer(layer).VTile(BlockId{block}, head));
      }
    }
  }
  ASSERT_EQ(tiles.size(), 4u * 5 * 3 * 2);
  const std::byte* previous = nullptr;
  for (const std::byte* tile : tiles) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tile) % 64, 0u);
    if (previous != nullptr) {
      EXPECT_GE(tile - previous, static_cast<ptrdiff_t>(layout.tile_bytes()));
    }
    previous = tile;
    for (size_t i = 0; i < layout.tile_bytes(); ++i) ASSERT_EQ(tile[i], std::byte{0});
  }
}

TEST(KvPool, RefusesMoreMemoryThanTheSystemHas) {
  const absl::StatusOr<KvPool> pool =
      KvPool::Create(KvLayout::Make(KvDType::kF32, 64, 256), 1000, 1 << 30);
  EXPECT_EQ(pool.status().code(), absl::StatusCode::kResourceExhausted);
}

std::vector<std::byte> ElementBytes(const KvLayout& layout, const std::byte* tile, size_t index) {
  const size_t n = layout.element_bytes();
  return {tile + index * n, tile + (index + 1) * n};
}

TEST(BlockCopy, CopiesLeadingTokensAndZeroesTheOtherValues) {
  for (KvDType dtype : {KvDType::kF32, KvDType::kBF16, KvDType::kInt8, KvDType::kInt16}) {
    for (int32_t dim : {40, 64, 80}) {
      for (int32_t count : {1, 2, 31, 32, 63}) {
        const KvLayout layout = KvLayout::Make(dtype, 2, dim);
        const KvPool pool = KvPool::Create(layout, 2, 3).value();
        const KvLayerView kv = pool.Layer(1);
        std::memset(pool.Layer(0).data, 0xff, 2 * 3 * layout.block_bytes());
        for (size_t i = 0; i < layout.block_bytes(); ++i)
          kv.KTile(BlockId{2}, 0)[i] = static_cast<std::byte>(i * 31 % 255);
        const BlockCopy copy = {.src = BlockId{2}, .dst = BlockId{0}, .token_count = count};
        CopyBlocks(kv, {&copy, 1});
        for (int32_t head = 0; head < 2; ++head) {
          for (int32_t token = 0; layout.scaled() && token < 64; ++token) {
            const BlockId from{2}, to{0};
            ASSERT_EQ(kv.VScales(to, head)[token],
                      token < count ? kv.VScales(from, head)[token] : 0);
            if (token < count) {
              ASSERT_EQ(kv.KScales(to, head)[token], kv.KScales(from, head)[token]);
            }
          }
          for (int32_t token = 0; token < 64; ++token) {
            for (int32_t d = 0; d < dim; ++d) {
              const size_t k = layout.KIndex(token, d), v = layout.VIndex(token, d);
              if (token < count) {
                ASSERT_EQ(ElementBytes(layout, kv.KTile(BlockId{0}, head), k),
                          ElementBytes(layout, kv.KTile(BlockId{2}, head), k));
                ASSERT_EQ(ElementBytes(layout, kv.VTile(BlockId{0}, head), v),
                          ElementBytes(layout, kv.VTile(BlockId{2}, head), v));
              } else {
                ASSERT_EQ(ElementBytes(layout, kv.VTile(BlockId{0}, head), v),
                          std::vector<std::byte>(layout.element_bytes()));
              }
            }
          }
        }
        EXPECT_EQ(kv.KTile(BlockId{1}, 0)[7], std::byte{0xff});             // other blocks
        EXPECT_EQ(pool.Layer(0).KTile(BlockId{0}, 0)[7], std::byte{0xff});  // other layers
      }
    }
  }
}

}  // namespace
}  // namespace quire
