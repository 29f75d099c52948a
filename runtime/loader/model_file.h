// A model file, opened once and read by position: nothing is mapped, so a file that shrinks while
// it is read gives an error and never a signal. Any thread may read; the object owns the
// descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quire {

class ModelFile {
 public:
  // NOT_FOUND or PERMISSION_DENIED if it cannot be opened, INVALID_ARGUMENT if it is not a regular
  // file.
  static absl::StatusOr<ModelFile> Open(const std::string& path);
  ~ModelFile();
  ModelFile(ModelFile&& other) noexcept;
  ModelFile& operator=(ModelFile&& other) noexcept;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // at the time of Open

  // Fills `out` from `offset`; all of it or an error that names both numbers.
  absl::Status ReadAt(uint64_t offset, std::span<std::byte> out) const;
  // Asks the kernel to read the whole file ahead. Best effort.
  void Prefetch() const;

  // INVALID_ARGUMENT "PATH: WHAT".
  absl::Status Error(std::string_view what) const;

 private:
  ModelFile(std::string path, int fd, uint64_t size);
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// A name out of a file, fit for a message: control bytes escaped, at most 80 characters.
std::string Printable(std::string_view name);

}  // namespace quire
