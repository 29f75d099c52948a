#include "runtime/kernels/pack.h"

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/runtime/kernels/quant_blocks.h"

namespace quire {
namespace {

std::vector<std::byte> FromHex(const std::string& hex) {
  std::vector<std::byte> out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

std::vector<float> Dequantized(DType type, std::span<const std::byte> src, int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  DequantizeBlocks(type, src.data(), count, out.data());
  return out;
}

TEST(Dequantize, GivesTheBitsOfTheReferencePackage) {
  std::ifstream file(QUIRE_GOLDEN_DIR "/dequant.txt");
  ASSERT_TRUE(file.good());
  int types = 0;
  for (std::string line; std::getline(file, line); ++types) {
    std::istringstream words(line);
    std::string name, blocks_hex, values_hex;
    words >> name >> blocks_hex >> values_hex;
    const DTypeTraits* traits = nullptr;
    for (const DTypeTraits& t : kDTypes) {
      if (t.name == name) traits = &t;
    }
    ASSERT_NE(traits, nullptr) << name;
    const std::vector<std::byte> blocks = FromHex(blocks_hex), value_bytes = FromHex(values_hex);
    std::vector<float> wanted(value_bytes.size() / 4);
    std::memcpy(wanted.data(), value_bytes.data(), value_bytes.size());
    ASSERT_FALSE(wanted.empty()) << name;
    ASSERT_EQ(wanted.size() / traits->block_elements * traits->block_bytes, blocks.size()) << name;
    EXPECT_EQ(Dequantized(traits->type, blocks, static_cast<int64_t>(wanted.size())), wanted)
        << name;
  }
  EXPECT_EQ(types, 10);
}

TEST(Dequantize, CopiesF32) {
  const std::vector<std::byte> file = RandomBlocks(DType::kF32, 1, 64, BlockKind::kRandom, 1);
  const std::vector<float> values = Dequantized(DType::kF32, file, 64);
  EXPECT_EQ(std::memcmp(values.data(), file.data(), file.size()), 0);
}

TEST(Pack, RowReadBackHasTheBitsOfItsFileData) {
  for (const DTypeTraits& traits : kDTypes) {
    for (const BlockKind kind :
         {BlockKind::kRandom, BlockKind::kExtremeScales, BlockKind::kLargestCodes}) {
      for (const int32_t blocks : {1, 3}) {
        const int32_t rows = 37, cols = blocks * std::max(traits.block_elements, 8);
        const std::vector<std::byte> file = RandomBlocks(traits.type, rows, cols, kind, 7);
        const PackedWeights packed(traits.type, rows, cols, file);
        for (int32_t row = 0; row < rows; ++row) {
          std::vector<float> got(static_cast<size_t>(cols));
          UnpackRow(packed.matrix, row, got.data());
          const auto src =
              std::span(file).subspan(RowBytes(traits.type, cols) * static_cast<size_t>(row));
          ASSERT_EQ(BitsOf(got), BitsOf(Dequantized(traits.type, src, cols)))
              << traits.name << " row " << row << " of " << cols;
        }
      }
    }
  }
}

TEST(Pack, PanelRangesAddUpToTheWholeMatrix) {
  for (const DTypeTraits& traits : kDTypes) {
    const int32_t rows = 90, cols = 256;
    const std::vector<std::byte> file =
        RandomBlocks(traits.type, rows, cols, BlockKind::kRandom, 3);
    const PackedWeights whole(traits.type, rows, cols, file);
    GuardedBuffer parts(PackedBytes(traits.type, rows, cols));
    std::memset(parts.bytes().data(), 0xee, parts.bytes().size());
    for (const auto& [begin, end] : {std::pair{4, 6}, {0, 1}, {1, 4}}) {
      PackPanels(file, whole.matrix, begin, end, parts.bytes().data());
    }
    EXPECT_EQ(std::memcmp(parts.bytes().data(), whole.memory.bytes().data(), parts.bytes().size()),
              0)
        << traits.name;
  }
}

TEST(Pack, ReadsNothingBeyondTheFileData) {
  for (const DTypeTraits& traits : kDTypes) {
    const int32_t rows = 17, cols = 256;
    const std::vector<std::byte> file =
        RandomBlocks(traits.type, rows, cols, BlockKind::kRandom, 5);
    const GuardedBuffer source(file.size());
    std::memcpy(source.bytes().data(), file.data(), file.size());
    const PackedWeights a(traits.type, rows, cols, source.bytes()),
        b(traits.type, rows, cols, file);
    EXPECT_EQ(std::memcmp(a.matrix.data, b.matrix.data, a.memory.bytes().size()), 0) << traits.name;
  }
}

TEST(Pack, MissingRowsOfTheLastPanelAreZero) {
  for (const DTypeTraits& traits : kDTypes) {
    const int32_t cols = 256;
    const std::vector<std::byte> file =
        RandomBlocks(traits.type, 8, cols, BlockKind::kLargestCodes, 9);
    PackedWeights packed(traits.type, 8, cols, file);
    PackedMatrix all_rows = packed.matrix;
    all_rows.rows = kPanelRows;
    std::vector<float> row(static_cast<size_t>(cols), 1.0f);
    for (int32_t r = 8; r < kPanelRows; ++r) {
      UnpackRow(all_rows, r, row.data());
      for (const float v : row) ASSERT_EQ(v, 0.0f) << traits.name;
    }
  }
}

TEST(Pack, SizesAreWholeLinesAndNearTheFileSize) {
  for (const DTypeTraits& traits : kDTypes) {
    EXPECT_EQ(PanelBytes(traits.type, 1536) % 64, 0u);
    const double ratio = static_cast<double>(PackedBytes(traits.type, 64, 1536)) /
                         static_cast<double>(64 * RowBytes(traits.type, 1536));
    EXPECT_GE(ratio, 1.0) << traits.name;
    EXPECT_LE(ratio, 1.03) << traits.name;
  }
  EXPECT_EQ(PanelBytes(DType::kQ4_1, 576), 18u * 320u);
}

}  // namespace
}  // namespace quire
