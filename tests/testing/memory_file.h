// A file in memory with a path that can be opened like any other, for tests of readers. One thread;
// the file is gone with the object.
#pragma once

#include <string>
#include <string_view>

namespace quire {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content = {});
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }
  void Write(size_t offset, std::string_view bytes);
  void Resize(size_t bytes);  // grows with zeros that take no memory

 private:
  int fd_;
  std::string path_;
};

// The first `bytes` bytes of a file, or all of it if it is shorter.
std::string ReadFileStart(const std::string& path, size_t bytes);

}  // namespace quire
