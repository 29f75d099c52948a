#include "runtime/base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace quire {

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, size_t max_bytes) {
  const auto refuse = [&path](const std::string& cause) {
    return absl::FailedPreconditionError(absl::StrCat("cannot read ", path, ": ", cause));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return refuse(std::strerror(errno));
  const absl::Cleanup closer = [fd] { close(fd); };
  struct stat info = {};
  if (fstat(fd, &info) != 0) return refuse(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return refuse("not a regular file");
  // The size is where it starts; the file may grow or shrink meanwhile.
  std::string text;
  while (text.size() <= max_bytes) {
    const size_t before = text.size();
    text.resize(std::min(before + (size_t{64} << 10), max_bytes + 1));
    const ssize_t got = read(fd, text.data() + before, text.size() - before);
    if (got < 0 && errno != EINTR) return refuse(std::strerror(errno));
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
  }
  return refuse(absl::StrCat("larger than ", max_bytes, " bytes"));
}

}  // namespace quire
