#include "runtime/loader/byte_cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/testing/gguf_builder.h"
#include "tests/testing/memory_file.h"

namespace quire {
namespace {

using testing::HasSubstr;

class ByteCursorTest : public testing::Test {
 protected:
  ByteCursor Over(std::string_view bytes) {
    memory_ = std::make_unique<MemoryFile>(bytes);
    file_ = std::make_unique<ModelFile>(*ModelFile::Open(memory_->path()));
    return ByteCursor(*file_);
  }

  std::unique_ptr<MemoryFile> memory_;
  std::unique_ptr<ModelFile> file_;
};

TEST(CheckedArithmetic, ReportsEveryOverflow) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(CheckedAdd(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedMul(uint64_t{1} << 32, (uint64_t{1} << 32) - 1),
            kMax - ((uint64_t{1} << 32) - 1));
  EXPECT_EQ(CheckedMul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(CheckedMul(kMax, 0), 0u);
  EXPECT_EQ(CheckedMul(0, kMax), 0u);
  EXPECT_EQ(CheckedAlignUp(0, 32), 0u);
  EXPECT_EQ(CheckedAlignUp(33, 32), 64u);
  EXPECT_EQ(CheckedAlignUp(kMax - 31, 32), kMax - 31);
  EXPECT_EQ(CheckedAlignUp(kMax - 30, 32), std::nullopt);
}

TEST_F(ByteCursorTest, ReadsEachTypeAtItsWidth) {
  ByteCursor in =
      Over(Bytes(uint8_t{200}) + Bytes(int16_t{-2}) + Bytes(uint32_t{70000}) + Bytes(1.5f) +
           Bytes(int64_t{-1}) + Bytes(2.5) + std::string(1, '\1') + LengthPrefixed("abc"));
  EXPECT_EQ(*in.Read<uint8_t>(), 200);
  EXPECT_EQ(*in.Read<int16_t>(), -2);
  EXPECT_EQ(*in.Read<uint32_t>(), 70000u);
  EXPECT_EQ(*in.Read<float>(), 1.5f);
  EXPECT_EQ(*in.Read<int64_t>(), -1);
  EXPECT_EQ(*in.Read<double>(), 2.5);
  EXPECT_EQ(*in.ReadBool(), true);
  EXPECT_EQ(*in.ReadString(3), "abc");
  EXPECT_EQ(in.remaining(), 0u);
}

TEST_F(ByteCursorTest, FailedReadMovesNothing) {
  ByteCursor in = Over("abc");
  in.SetContext("key k");
  const absl::Status status = in.Read<uint32_t>().status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("offset 0, key k: truncated at 3: 4 bytes expected, 3 remain"));
  EXPECT_FALSE(in.Skip(4).ok());
  EXPECT_EQ(in.offset(), 0u);
  EXPECT_TRUE(in.Skip(3).ok());
}

TEST_F(ByteCursorTest, RefusesLengthsBeyondTheRestOrTheLimit) {
  for (const uint64_t length :
       {uint64_t{9}, uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()}) {
    ByteCursor in = Over(Bytes(length) + "12345678");
    EXPECT_THAT(std::string(in.ReadString(~uint64_t{0}).status().message()),
                HasSubstr("8 bytes remain"));
  }
  ByteCursor in = Over(LengthPrefixed("12345678"));
  EXPECT_THAT(std::string(in.ReadString(7).status().message()), HasSubstr("expected at most 7"));
}

TEST_F(ByteCursorTest, RefusesBoolBytesOtherThanZeroAndOne) {
  for (const char byte : {'\2', '\x7f', '\xff'}) {
    ByteCursor in = Over(std::string(1, byte));
    EXPECT_THAT(std::string(in.ReadBool().status().message()), HasSubstr("expected 0 or 1"));
  }
}

TEST_F(ByteCursorTest, ReadsStringsLongerThanItsWindow) {
  std::string text(1'000'000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  ByteCursor in = Over(LengthPrefixed(text) + LengthPrefixed("end"));
  EXPECT_EQ(*in.ReadString(1 << 20), text);
  EXPECT_EQ(*in.ReadString(3), "end");
}

TEST_F(ByteCursorTest, StaysInsideItsRange) {
  Over("0123456789");
  ByteCursor in(*file_, 4, 6);
  EXPECT_EQ(in.remaining(), 2u);
  EXPECT_FALSE(in.Read<uint32_t>().ok());
  EXPECT_EQ(*in.Read<uint16_t>(), '4' + ('5' << 8));
  EXPECT_EQ(ByteCursor(*file_, 20, 30).remaining(), 0u);
  EXPECT_EQ(ByteCursor(*file_, 8, 30).remaining(), 2u);
  EXPECT_EQ(ByteCursor(*file_, 8, 3).remaining(), 0u);
}

// F.G14: a file that shrinks while it is read is an error, not a signal.
TEST_F(ByteCursorTest, ReportsAFileThatShrinksWhileItIsRead) {
  ByteCursor in = Over(std::string(600'000, 'x'));
  EXPECT_TRUE(in.Read<uint8_t>().ok());
  memory_->Resize(300'000);
  absl::Status status;
  while (status.ok() && in.remaining() > 0) status = in.Read<uint8_t>().status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("truncated while it was read"));
}

TEST(ModelFile, RefusesWhatIsNotARegularFile) {
  EXPECT_EQ(ModelFile::Open("/no/such/file").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ModelFile::Open("/").status().message()), HasSubstr("found a directory"));
  EXPECT_THAT(std::string(ModelFile::Open("/dev/null").status().message()),
              HasSubstr("expected a regular file"));
}

TEST(ModelFile, EscapesNamesForMessages) {
  EXPECT_EQ(Printable("a\nb"), "a\\nb");
  EXPECT_EQ(Printable(std::string("\0\x1b", 2)), "\\x00\\x1b");
  EXPECT_EQ(Printable(std::string(500, 'y')), std::string(80, 'y') + "...");
}

}  // namespace
}  // namespace quire
