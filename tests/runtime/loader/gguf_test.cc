#include "runtime/loader/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/testing/gguf_builder.h"
#include "tests/testing/memory_file.h"

// Rows G1-G13 of the fault catalogue, on files written in memory.
namespace quire {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kTypeU32 = 4, kTypeBool = 7, kTypeString = 8, kTypeArray = 9;

absl::StatusOr<GgufHeader> Parse(const std::string& bytes) {
  const MemoryFile memory(bytes);
  const absl::StatusOr<ModelFile> file = ModelFile::Open(memory.path());
  if (!file.ok()) return file.status();
  return ParseGguf(*file);
}

std::string ErrorOf(const std::string& bytes) {
  const absl::StatusOr<GgufHeader> header = Parse(bytes);
  if (header.ok()) return "(parsed)";
  EXPECT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(header.status().message());
}

GgufBuilder OneTensor() {
  GgufBuilder b;
  b.U32("some.key", 1).Add({"t", 0, {8, 2}, std::string(64, '\0'), {}});
  return b;
}

TEST(Gguf, ReadsKeysAndTensorsOfBothVersions) {
  for (const uint32_t version : {2u, 3u}) {
    GgufBuilder b = OneTensor();
    b.version = version;
    b.String("name", "hello")
        .I32s("ints", {1, 2, 3})
        .Add({"u", 8, {32}, std::string(34, '\0'), {}});
    const absl::StatusOr<GgufHeader> h = Parse(b.Build());
    ASSERT_TRUE(h.ok()) << h.status();
    EXPECT_EQ(h->version, version);
    ASSERT_EQ(h->keys.size(), 3u);
    EXPECT_EQ(h->FindKey("some.key")->bits, 1u);
    EXPECT_EQ(h->FindKey("ints")->element, GgufType::kI32);
    EXPECT_EQ(h->FindKey("ints")->count, 3u);
    EXPECT_EQ(h->FindKey("nothing"), nullptr);
    ASSERT_EQ(h->tensors.size(), 2u);
    EXPECT_EQ(ShapeText(h->tensors[0]), "[8, 2]");
    EXPECT_EQ(h->tensors[0].begin % 32, 0u);
    EXPECT_EQ(h->tensors[1].begin, h->tensors[0].begin + 64);
    EXPECT_EQ(h->FindTensor("u")->bytes, 34u);
    EXPECT_EQ(h->FindTensor("v"), nullptr);
  }
}

// F.G1
TEST(Gguf, ReportsTruncationAtEveryByte) {
  GgufBuilder b = OneTensor();
  b.String("s", "text").Strings("list", {"a", "bc"}).I32s("ints", {1, 2}).Bool("flag", true);
  const std::string whole = b.Build();
  ASSERT_TRUE(Parse(whole).ok());
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(ErrorOf(whole.substr(0, length)), HasSubstr("truncated")) << length;
  }
}

// F.G2
TEST(Gguf, NamesWrongMagicAndVersion) {
  for (const char* magic : {"ggml", "ggmf", "ggjt", "ggla", "lmgg", "FUGG",
                            "\x7f"
                            "ELF"}) {
    std::string bytes = OneTensor().Build();
    bytes.replace(0, 4, magic);
    EXPECT_THAT(ErrorOf(bytes),
                AllOf(HasSubstr("offset 0, magic: found \""), HasSubstr("expected \"GGUF\"")));
  }
  for (const uint32_t version : {0u, 1u, 4u, 0xffffffffu}) {
    GgufBuilder b = OneTensor();
    b.version = version;
    EXPECT_THAT(ErrorOf(b.Build()), HasSubstr("offset 4, version: found " +
                                              std::to_string(version) + ", expected 2 or 3"));
  }
  GgufBuilder swapped = OneTensor();
  swapped.version = 3u << 24;
  EXPECT_THAT(ErrorOf(swapped.Build()), HasSubstr("big-endian"));
}

// F.G3
TEST(Gguf, ComparesCountsWithWhatRemains) {
  for (const uint64_t count : {kMax, kMax / 14, uint64_t{1} << 40, uint64_t{65537}, uint64_t{50}}) {
    GgufBuilder keys = OneTensor();
    keys.key_count = count;
    EXPECT_THAT(ErrorOf(keys.Build()),
                HasSubstr("offset 16, key count: truncated: found " + std::to_string(count)));
    GgufBuilder tensors = OneTensor();
    tensors.tensor_count = count;
    EXPECT_THAT(ErrorOf(tensors.Build()), HasSubstr("offset 8, tensor count: truncated: found"));
  }
  // Below the bound of the bytes, above the fixed one.
  GgufBuilder many = OneTensor();
  many.key_count = kMaxGgufKeys + 1;
  EXPECT_THAT(ErrorOf(many.Build() + std::string(2 << 20, '\0')),
              HasSubstr("expected at most 65536"));
}

// F.G4
TEST(Gguf, RefusesLongStringsAndNestedArrays) {
  for (const uint64_t length : {kMax, kMax - 7, uint64_t{1} << 32, uint64_t{1000}}) {
    EXPECT_THAT(ErrorOf(OneTensor().Raw("s", kTypeString, Bytes(length)).Build()),
                AllOf(HasSubstr("key s"), HasSubstr("string length " + std::to_string(length))));
    EXPECT_THAT(
        ErrorOf(OneTensor()
                    .Raw("s", kTypeArray, Bytes(kTypeString) + Bytes(uint64_t{1}) + Bytes(length))
                    .Build()),
        HasSubstr("key s"));
  }
  std::string nested;
  for (int depth = 0; depth < 1'000'000; ++depth) nested += Bytes(kTypeArray) + Bytes(uint64_t{1});
  EXPECT_THAT(ErrorOf(OneTensor().Raw("deep", kTypeArray, nested).Build()),
              HasSubstr("key deep: found an array of arrays"));
}

// F.G5
TEST(Gguf, RefusesArraySizesThatWrap) {
  for (const uint32_t element : {0u, 1u, 2u, 5u, 6u, 7u, 8u, 10u, 12u}) {
    for (const uint64_t count :
         {kMax, kMax / 8 + 1, kMax / 4 + 1, kMax / 2 + 1, uint64_t{1} << 61, uint64_t{10'000}}) {
      EXPECT_THAT(ErrorOf(OneTensor().Raw("a", kTypeArray, Bytes(element) + Bytes(count)).Build()),
                  AllOf(HasSubstr("key a: "), HasSubstr("array count " + std::to_string(count))))
          << element;
    }
  }
}

// F.G6
TEST(Gguf, RefusesBadNamesTypesAndBools) {
  EXPECT_THAT(ErrorOf(OneTensor().U32("", 1).Build()),
              HasSubstr("name of key 1: found an empty name"));
  EXPECT_THAT(ErrorOf(OneTensor().Append("some.key", kTypeU32, Bytes(2u)).Build()),
              HasSubstr("key some.key: found twice"));
  EXPECT_THAT(ErrorOf(OneTensor().U32(std::string(65536, 'k'), 1).Build()),
              HasSubstr("found string length 65536, expected at most 1024"));
  for (const uint32_t type : {13u, 255u, 0x80000000u}) {
    EXPECT_THAT(ErrorOf(OneTensor().Raw("k", type, Bytes(kMax)).Build()),
                HasSubstr("key k: found value type " + std::to_string(type)));
    EXPECT_THAT(ErrorOf(OneTensor()
                            .Raw("k", kTypeArray, Bytes(type) + Bytes(uint64_t{1}) + Bytes(kMax))
                            .Build()),
                HasSubstr("key k: found value type"));
  }
  EXPECT_THAT(ErrorOf(OneTensor().Raw("k", kTypeBool, "\2").Build()),
              HasSubstr("key k: found bool byte 2"));
  EXPECT_THAT(
      ErrorOf(OneTensor()
                  .Raw("k", kTypeArray, Bytes(kTypeBool) + Bytes(uint64_t{2}) + std::string("\1\5"))
                  .Build()),
      HasSubstr("key k: found bool byte 5"));
}

// F.G7, F.G8
TEST(Gguf, AcceptsPowersOfTwoAsAlignmentAlone) {
  for (const uint32_t alignment : {0u, 13u, 131072u, 0x80000000u, 0xffffffffu}) {
    EXPECT_THAT(ErrorOf(OneTensor().U32("general.alignment", alignment).Build()),
                HasSubstr("key general.alignment: found " + std::to_string(alignment) +
                          ", expected a power of two"));
  }
  EXPECT_THAT(ErrorOf(OneTensor().Raw("general.alignment", 5, Bytes(64)).Build()),
              HasSubstr("key general.alignment: found type INT32, expected UINT32"));
  for (const uint32_t alignment : {1u, 8u, 64u, 4096u, 65536u}) {
    GgufBuilder b = OneTensor();
    b.U32("general.alignment", alignment).Add({"u", 0, {8}, std::string(32, '\0'), {}});
    b.alignment = alignment;
    const absl::StatusOr<GgufHeader> h = Parse(b.Build());
    ASSERT_TRUE(h.ok()) << h.status();
    EXPECT_EQ(h->tensors[1].begin % alignment, 0u);
  }
}

// F.G9
TEST(Gguf, RefusesShapesThatWrap) {
  const auto shaped = [](std::vector<uint64_t> dims, uint32_t type) {
    GgufBuilder b;
    b.Add({"t", type, std::move(dims), std::string(64, '\0'), {}});
    return b.Build();
  };
  EXPECT_THAT(ErrorOf(shaped({}, 0)), HasSubstr("tensor t: found 0 dimensions, expected 1 to 4"));
  EXPECT_THAT(ErrorOf(shaped({1, 1, 1, 1, 1}, 0)), HasSubstr("found 5 dimensions"));
  EXPECT_THAT(ErrorOf(shaped({kMax}, 0)), HasSubstr("found dimension 18446744073709551615"));
  EXPECT_THAT(ErrorOf(shaped({uint64_t{1} << 32, uint64_t{1} << 32}, 0)), HasSubstr("overflows"));
  EXPECT_THAT(ErrorOf(shaped({uint64_t{1} << 62}, 0)), HasSubstr("overflows"));
  EXPECT_THAT(ErrorOf(shaped({uint64_t{1} << 60, 2, 2, 2}, 0)), HasSubstr("overflows"));
  EXPECT_THAT(ErrorOf(shaped({uint64_t{1} << 59}, 0)), HasSubstr("truncated"));
  // Each size fits, the running total does not.
  GgufBuilder total;
  for (uint64_t i = 0; i < 9; ++i) {
    total.Add({"t" + std::to_string(i), 0, {uint64_t{1} << 59}, "", i << 61});
  }
  EXPECT_THAT(ErrorOf(total.Build()), HasSubstr("total size of the tensors overflows"));
}

// F.G10
TEST(Gguf, AcceptsAnEmptyTensor) {
  GgufBuilder b;
  b.Add({"none", 0, {0, 4}, "", {}}).Add({"t", 0, {8}, std::string(32, '\0'), {}});
  const absl::StatusOr<GgufHeader> h = Parse(b.Build());
  ASSERT_TRUE(h.ok()) << h.status();
  EXPECT_EQ(h->tensors[0].bytes, 0u);
}

// F.G11
TEST(Gguf, ListsSupportedTypesForAnUnknownOne) {
  for (const uint32_t type : {4u, 5u, 16u, 31u, 0xffffffffu}) {
    GgufBuilder b;
    b.Add({"t", type, {256}, std::string(1024, '\0'), {}});
    EXPECT_THAT(
        ErrorOf(b.Build()),
        AllOf(HasSubstr("tensor t: found tensor type " + std::to_string(type)),
              HasSubstr("supported: F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4_K Q5_K Q6_K")));
  }
  GgufBuilder b;
  b.Add({"t", 12, {128, 2}, std::string(144, '\0'), {}});
  EXPECT_THAT(ErrorOf(b.Build()),
              HasSubstr("found rows of 128 elements, expected a multiple of 256 for Q4_K"));
}

// F.G12
TEST(Gguf, AcceptsOnlyTheExactOffset) {
  for (const uint64_t offset : {uint64_t{63}, uint64_t{96}, uint64_t{32}, uint64_t{0},
                                uint64_t{1} << 40, kMax, kMax - 63}) {
    GgufBuilder b = OneTensor();
    b.Add({"u", 0, {8}, std::string(32, '\0'), offset});
    EXPECT_THAT(ErrorOf(b.Build()), HasSubstr("tensor u: found data offset " +
                                              std::to_string(offset) + ", expected 64"));
  }
}

// F.G13
TEST(Gguf, RefusesRepeatedOrEndlessTensorNames) {
  EXPECT_THAT(ErrorOf(OneTensor().Add({"t", 0, {8}, std::string(32, '\0'), {}}).Build()),
              HasSubstr("tensor t: found twice"));
  EXPECT_THAT(
      ErrorOf(OneTensor().Add({std::string(257, 'n'), 0, {8}, std::string(32, '\0'), {}}).Build()),
      HasSubstr("expected at most 256"));
  EXPECT_THAT(ErrorOf(OneTensor().Add({"", 0, {8}, std::string(32, '\0'), {}}).Build()),
              HasSubstr("empty name"));
}

// F.G14
TEST(Gguf, RefusesDataOneByteShort) {
  const std::string whole = OneTensor().Build();
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.size() - 1)),
              HasSubstr("tensor t has 64 bytes at offset"));
}

}  // namespace
}  // namespace quire
