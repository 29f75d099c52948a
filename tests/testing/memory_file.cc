#include "tests/testing/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "absl/log/check.h"

namespace quire {

MemoryFile::MemoryFile(std::string_view content) : fd_(memfd_create("quire-test", MFD_CLOEXEC)) {
  CHECK_GE(fd_, 0);
  path_ = "/proc/self/fd/" + std::to_string(fd_);
  Write(0, content);
}

MemoryFile::~MemoryFile() { close(fd_); }

void MemoryFile::Write(size_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    CHECK_GT(n, 0);
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<size_t>(n);
  }
}

void MemoryFile::Resize(size_t bytes) { CHECK_EQ(ftruncate(fd_, static_cast<off_t>(bytes)), 0); }

std::string ReadFileStart(const std::string& path, size_t bytes) {
  std::ifstream in(path, std::ios::binary);
  CHECK(in.good());
  std::string content(bytes, '\0');
  in.read(content.data(), static_cast<std::streamsize>(bytes));
  content.resize(static_cast<size_t>(in.gcount()));
  return content;
}

}  // namespace quire
