#include "server/cli/progress.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace quire {
namespace {

constexpr int kBarCells = 30;
constexpr std::chrono::milliseconds kRefresh(100);

bool WantsBar() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && std::string(term) != "dumb";
}

}  // namespace

LoadProgress::LoadProgress() : bar_(WantsBar()) {}

void LoadProgress::Show(size_t done_bytes, size_t total_bytes) {
  if (total_bytes == 0) return;
  const int percent =
      static_cast<int>(100.0 * static_cast<double>(done_bytes) / static_cast<double>(total_bytes));
  const auto now = std::chrono::steady_clock::now();
  if (bar_ ? now - last_ < kRefresh && percent < 100 : percent < last_percent_ + 25) return;
  last_ = now;
  last_percent_ = percent;
  if (!bar_) {
    std::fprintf(stderr, "quire: loading %d %% of %zu MB\n", percent, total_bytes >> 20);
    return;
  }
  const int filled = percent * kBarCells / 100;
  std::fprintf(stderr, "\rloading [%s%s] %3d %%", std::string(filled, '#').c_str(),
               std::string(kBarCells - filled, '.').c_str(), percent);
}

void LoadProgress::Finish() {
  if (bar_ && last_percent_ > 0) std::fprintf(stderr, "\r%*s\r", kBarCells + 20, "");
}

}  // namespace quire
