#include "server/cli/cost_file.h"

#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/cli/text_file.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

CostFile Example() {
  CostFile file{
      .model = "m.gguf",
      .cpu = "A \"quoted\" CPU",
      .isa = "avx2",
      .kv_dtype = "bf16",
      .threads = 2,
      .context_tokens = 2048,
      .kv_block_bytes = 1474560,
      .fit = {},
      .points = {
          {.shape = {.rows = 1, .sequences = 1, .draws = 1, .decode_kv = 5}, .seconds = 0.01},
          {.shape = {.rows = 2, .sequences = 2, .draws = 2, .decode_kv = 9}, .seconds = 0.012}}};
  for (size_t i = 0; i < kCostTermNames.size(); ++i) {
    file.fit.model.seconds[i] = 1e-6 * static_cast<double>(i + 1);
  }
  return file;
}

class CostFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<CostFile> Read(const std::string& text) {
    const std::string path = testing::TempDir() + "/cost_file_test.json";
    EXPECT_TRUE(WriteTextFile(path, text).ok());
    return ReadCostFile(path);
  }
  std::string ErrorOf(std::string_view from, std::string_view to) {
    std::string text = CostFileJson(Example());
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const absl::StatusOr<CostFile> file = Read(text);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kFailedPrecondition) << to;
    return std::string(file.status().message());
  }
};

TEST_F(CostFileTest, ReadsBackWhatWasWritten) {
  const absl::StatusOr<CostFile> file = Read(CostFileJson(Example()));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->model, "m.gguf");
  EXPECT_EQ(file->cpu, "A \"quoted\" CPU");
  EXPECT_EQ(file->threads, 2);
  EXPECT_EQ(file->context_tokens, 2048);
  EXPECT_EQ(file->kv_block_bytes, 1474560);
  for (size_t i = 0; i < kCostTermNames.size(); ++i) {
    EXPECT_NEAR(file->fit.model.seconds[i], Example().fit.model.seconds[i], 1e-12);
  }
}

TEST_F(CostFileTest, NamesFileAndKey) {
  EXPECT_THAT(ErrorOf("\"threads\": 2", "\"threads\": 0"),
              HasSubstr("cost_file_test.json: threads: wanted a number 1..1024"));
  EXPECT_THAT(ErrorOf("\"threads\"", "\"thread\""), HasSubstr("threads: wanted a number"));
  EXPECT_THAT(ErrorOf("\"m.gguf\"", "7"), HasSubstr("model: wanted text"));
  EXPECT_THAT(ErrorOf("\"version\": 1", "\"version\": 2"), HasSubstr("version 2, wanted"));
  EXPECT_THAT(ErrorOf("quire-step-cost", "bench"), HasSubstr("got kind 'bench'"));
  EXPECT_THAT(ErrorOf("\"rows_to_4\": 2", "\"rows_to_4\": -2"),
              HasSubstr("microseconds.rows_to_4: wanted a number"));
  EXPECT_THAT(ErrorOf("\"rows_to_4\"", "\"rows_to_5\""), HasSubstr("microseconds.rows_to_4"));
  EXPECT_THAT(ErrorOf("\"microseconds\": {", "\"microseconds\": 3, \"x\": {"),
              HasSubstr("microseconds: wanted an object"));
  EXPECT_THAT(ErrorOf("{", "["), HasSubstr("wanted one JSON object"));
}

TEST(ReadCostFile, NamesAFileThatIsNotThere) {
  EXPECT_THAT(std::string(ReadCostFile("/nonexistent/cost.json").status().message()),
              HasSubstr("/nonexistent/cost.json"));
}

}  // namespace
}  // namespace quire
