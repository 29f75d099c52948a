#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "tests/fuzz/gguf_target.h"
#include "tests/testing/gguf_builder.h"
#include "tests/testing/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Deterministic mutations of whole files in place of a fuzzer, and the corpus. A failure is a CHECK
// or a signal.
namespace quire {
namespace {

TEST(GgufFuzz, ReplaysItsCorpus) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(QUIRE_GGUF_CORPUS)) {
    const std::string bytes = ReadFileStart(entry.path(), 1 << 20);
    SCOPED_TRACE(entry.path().filename().string());
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()),
              0);
    const bool valid = entry.path().filename().string().starts_with("valid-");
    EXPECT_EQ(LoadAndCheck(entry.path()).ok(), valid);
    ++files;
  }
  EXPECT_GE(files, 30u);
}

// F.G1, F.G14
TEST(GgufFuzz, EveryTruncationOfATinyModelIsAnError) {
  size_t header = 0;
  const std::string bytes = TinyLlama({.vocab = 20}).Build(&header);
  MemoryFile file(bytes);
  ASSERT_TRUE(LoadAndCheck(file.path()).ok());
  for (size_t length = bytes.size() - 1; length > header;
       length -= std::min<size_t>(length - header, 97)) {
    file.Resize(length);
    ASSERT_FALSE(LoadAndCheck(file.path()).ok()) << length;
  }
  for (size_t length = header; length-- > 0;) {
    file.Resize(length);
    ASSERT_FALSE(LoadAndCheck(file.path()).ok()) << length;
  }
}

TEST(GgufFuzz, SeededByteFlipsGiveAModelOrAnError) {
  size_t header = 0, loaded = 0;
  const std::string bytes =
      TinyLlama({.matrix_type = DType::kQ4_1, .embedding_type = DType::kQ8_0, .tied = true})
          .Build(&header);
  MemoryFile file(bytes);
  std::mt19937 rng(20261129);
  for (int i = 0; i < 1000; ++i) {
    // Mostly the header, where a byte means most; one to four bytes at once.
    const size_t range = i % 10 == 0 ? bytes.size() : header;
    std::vector<size_t> places;
    for (uint32_t n = 0; n <= rng() % 4; ++n) places.push_back(rng() % range);
    for (const size_t at : places) file.Write(at, std::string(1, static_cast<char>(rng())));
    loaded += LoadAndCheck(file.path()).ok();
    for (const size_t at : places) file.Write(at, bytes.substr(at, 1));
  }
  EXPECT_GT(loaded, 10u);   // a name or a piece changed
  EXPECT_LT(loaded, 900u);  // but most bytes matter
  EXPECT_TRUE(LoadAndCheck(file.path()).ok()) << "the file was restored";
}

// Numbers that parsers trip over, at every offset of the header, as 4 and as 8 bytes.
TEST(GgufFuzz, ExtremeNumbersAnywhereGiveAModelOrAnError) {
  size_t header = 0;
  const std::string bytes = TinyLlama({.layers = 1, .vocab = 8, .tied = true}).Build(&header);
  MemoryFile file(bytes);
  const std::string numbers[] = {Bytes(~uint64_t{0}),         Bytes(uint64_t{1} << 63),
                                 Bytes(uint64_t{1} << 61),    Bytes(uint32_t{0xffffffff}),
                                 Bytes(uint32_t{0x80000000}), Bytes(uint32_t{0})};
  size_t failed = 0;
  for (size_t at = 0; at + 8 <= header; ++at) {
    for (const std::string& number : numbers) {
      file.Write(at, number);
      failed += !LoadAndCheck(file.path()).ok();
      file.Write(at, bytes.substr(at, number.size()));
    }
  }
  EXPECT_GT(failed, header);
}

// The default model: its header in a file of its true size, whose weights are a hole.
class GgufFuzzDefaultModel : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("QUIRE_TEST_MODEL");
    if (path == nullptr) GTEST_SKIP() << "QUIRE_TEST_MODEL is not set";
    header_ = ReadFileStart(path, kHeaderBytes);
    size_ = std::filesystem::file_size(path);
    file_.Write(0, header_);
    file_.Resize(size_);
    ASSERT_TRUE(ReadHeaderAndCheck(file_.path()).ok());
  }

  static constexpr size_t kHeaderBytes = 1785664;  // where its first tensor begins
  std::string header_;
  size_t size_ = 0;
  MemoryFile file_;
};

TEST_F(GgufFuzzDefaultModel, EveryTruncationIsAnError) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 200; ++i) {
    // A third each: anywhere, in the header, near the end of the file.
    const size_t length = i % 3 == 0   ? rng() % size_
                          : i % 3 == 1 ? rng() % kHeaderBytes
                                       : size_ - 1 - rng() % 4096;
    file_.Resize(length);
    ASSERT_FALSE(LoadAndCheck(file_.path()).ok()) << length;
    file_.Resize(size_);
    if (length < kHeaderBytes) file_.Write(length, header_.substr(length));
  }
  EXPECT_TRUE(ReadHeaderAndCheck(file_.path()).ok());
}

TEST_F(GgufFuzzDefaultModel, SeededHeaderFlipsGiveAHeaderOrAnError) {
  std::mt19937_64 rng(2);
  size_t accepted = 0;
  for (int i = 0; i < 500; ++i) {
    // Half of them outside the vocabulary's text: the first keys, or the tensor table at the end.
    size_t at = rng() % kHeaderBytes;
    if (i % 4 == 0) at = rng() % 1024;
    if (i % 4 == 1) at = kHeaderBytes - 1 - rng() % 16384;
    const char flipped = static_cast<char>(header_[at] ^ (1 << (rng() % 8)));
    file_.Write(at, std::string(1, flipped));
    accepted += ReadHeaderAndCheck(file_.path()).ok();
    file_.Write(at, header_.substr(at, 1));
  }
  EXPECT_GT(accepted, 50u);
  EXPECT_LT(accepted, 450u);
  EXPECT_TRUE(ReadHeaderAndCheck(file_.path()).ok());
}

}  // namespace
}  // namespace quire
