#include "server/rpc/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/log/log.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr std::string_view kScheme = "unix:";

// 0: somebody listens. The errno otherwise.
int Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  // Non-blocking: a full backlog is EAGAIN, not a wait.
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int failed =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0 : errno;
  close(fd);
  return failed;
}

}  // namespace

absl::Status ClaimUnixAddress(std::string_view address) {
  if (!address.starts_with(kScheme)) return absl::OkStatus();
  const std::string path(address.substr(kScheme.size()));
  const auto refuse = [&path](const char* why) {
    return absl::UnavailableError(absl::StrCat("cannot listen on unix:", path, ": ", why));
  };
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : refuse(std::strerror(errno));
  }
  if (!S_ISSOCK(info.st_mode)) return refuse("the path is taken by what is not a socket");
  const int failed = Connect(path);
  if (failed == 0 || failed == EAGAIN) return refuse("another server listens there");
  if (failed == ENOENT) return absl::OkStatus();
  if (failed != ECONNREFUSED) return refuse(std::strerror(failed));
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return refuse(std::strerror(errno));
  LOG(WARNING) << "removed the socket " << path << ", which nobody listened on";
  return absl::OkStatus();
}

}  // namespace quire
