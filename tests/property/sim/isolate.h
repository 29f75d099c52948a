// Runs a piece of a test in a child process, so that a failed CHECK or a crash is a result like any
// other: it can be reported with its seed, and shrunk. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace quire::sim {

// Shared with the child, and still readable after its death.
struct Progress {
  uint64_t seed = 0;
  int64_t steps = 0;
  char problem[1024] = {};
  char notes[4096] = {};
};

// Fills progress.problem if it finds one.
using Work = std::function<void(Progress& progress)>;

// What the child left behind. If it died, the problem is "died: " and the last lines it wrote to
// stderr. `seconds`: it is ended after this time, as a problem.
Progress RunIsolated(const Work& work, unsigned seconds);

void SetText(char* target, size_t size, const std::string& text);

}  // namespace quire::sim
