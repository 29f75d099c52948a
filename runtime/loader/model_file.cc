#include "runtime/loader/model_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/absl_view.h"

namespace quire {

absl::StatusOr<ModelFile> ModelFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer; it has no effect on regular files.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) {
    const absl::Status status =
        absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot open the model file"));
    // Ours to lack, not the file's fault.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      return absl::InternalError(status.message());
    }
    return absl::IsNotFound(status) ? status : absl::FailedPreconditionError(status.message());
  }
  ModelFile file(path, fd, 0);
  struct stat info = {};
  if (fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": fstat"));
  if (!S_ISREG(info.st_mode)) {
    return file.Error(S_ISDIR(info.st_mode) ? "found a directory, expected a regular file"
                                            : "expected a regular file");
  }
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

ModelFile::ModelFile(std::string path, int fd, uint64_t size)
    : path_(std::move(path)), fd_(fd), size_(size) {}

ModelFile::~ModelFile() {
  if (fd_ >= 0) close(fd_);
}

ModelFile::ModelFile(ModelFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

ModelFile& ModelFile::operator=(ModelFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

absl::Status ModelFile::ReadAt(uint64_t offset, std::span<std::byte> out) const {
  if (out.size() > size_ || offset > size_ - out.size()) {
    return Error(absl::StrCat("truncated at ", size_, ": ", out.size(),
                              " bytes expected at offset ", offset));
  }
  size_t done = 0;
  while (done < out.size()) {
    const size_t want = std::min<size_t>(out.size() - done, size_t{1} << 30);
    const ssize_t got = pread(fd_, out.data() + done, want, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": reading at offset ", offset + done));
    }
    if (got == 0) {
      return Error(absl::StrCat("truncated while it was read: it had ", size_,
                                " bytes, now ends at or before ", offset + done));
    }
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

void ModelFile::Prefetch() const { (void)posix_fadvise(fd_, 0, 0, POSIX_FADV_WILLNEED); }

absl::Status ModelFile::Error(std::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ": ", View(what)));
}

std::string Printable(std::string_view name) {
  constexpr size_t kMax = 80;
  const std::string escaped = absl::CHexEscape(View(name.substr(0, kMax)));
  return name.size() <= kMax ? escaped : absl::StrCat(escaped, "...");
}

}  // namespace quire
