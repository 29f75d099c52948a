#include "tests/property/sim/isolate.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"

namespace quire::sim {
namespace {

constexpr size_t kTail = 700;  // of what the child wrote to stderr

std::string ReadTail(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;) {
    // The first message names the cause; the rest is its stack.
    if (text.size() < 4 * kTail) text.append(buffer, static_cast<size_t>(n));
  }
  const size_t check = text.find("Check failed");  // behind the time and the place
  if (check != std::string::npos) text.erase(0, check);
  text.resize(std::min(text.size(), kTail));
  return text;
}

}  // namespace

void SetText(char* target, size_t size, const std::string& text) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(target, text.data(), length);
  target[length] = '\0';
}

Progress RunIsolated(const Work& work, unsigned seconds) {
  void* page =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  auto* progress = new (page) Progress;
  int pipe_ends[2];
  CHECK_EQ(pipe(pipe_ends), 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  CHECK_GE(child, 0);
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    alarm(seconds);
    work(*progress);
    _exit(0);
  }
  close(pipe_ends[1]);
  const std::string tail = ReadTail(pipe_ends[0]);
  close(pipe_ends[0]);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  Progress result = *progress;
  munmap(page, sizeof(Progress));
  if (result.problem[0] == '\0' && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
    const bool late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    SetText(result.problem, sizeof result.problem,
            absl::StrCat(late ? "out of time: " : "died: ", tail));
  }
  return result;
}

}  // namespace quire::sim
