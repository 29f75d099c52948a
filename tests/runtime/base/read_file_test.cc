#include "runtime/base/read_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace quire {
namespace {

class ReadRegularFileTest : public testing::Test {
 protected:
  ReadRegularFileTest() {
    folder_ = testing::TempDir() + "read_file_" + std::to_string(getpid());
    std::filesystem::create_directory(folder_);
  }
  ~ReadRegularFileTest() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Refusal(const std::string& path) const {
    const absl::StatusOr<std::string> text = ReadRegularFile(path, 1000);
    EXPECT_EQ(text.status().code(), absl::StatusCode::kFailedPrecondition) << path;
    EXPECT_NE(text.status().message().find(path), absl::string_view::npos) << text.status();
    return std::string(text.status().message());
  }

  std::string folder_;
};

TEST_F(ReadRegularFileTest, ReadsUpToTheLimit) {
  const std::string bytes = std::string(999, 'x') + '\0';
  std::ofstream(Path("full"), std::ios::binary) << bytes;
  EXPECT_EQ(*ReadRegularFile(Path("full"), 1000), bytes);
  std::ofstream(Path("empty"));
  EXPECT_EQ(*ReadRegularFile(Path("empty"), 1000), "");
  std::ofstream(Path("over"), std::ios::binary) << bytes << 'y';
  EXPECT_NE(Refusal(Path("over")).find("larger than 1000 bytes"), std::string::npos);
}

TEST_F(ReadRegularFileTest, RefusesWhatIsNoFileWithoutWaiting) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_NE(Refusal(Path("pipe")).find("not a regular file"), std::string::npos);
  EXPECT_NE(Refusal(folder_).find("not a regular file"), std::string::npos);
  EXPECT_NE(Refusal("/dev/zero").find("not a regular file"), std::string::npos);
  EXPECT_NE(Refusal(Path("none")).find("No such file"), std::string::npos);
  std::filesystem::create_symlink(Path("loop"), Path("loop"));
  EXPECT_NE(Refusal(Path("loop")).find("symbolic links"), std::string::npos);
}

}  // namespace
}  // namespace quire
