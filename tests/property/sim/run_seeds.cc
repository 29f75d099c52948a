#include "tests/property/sim/run_seeds.h"

#include <cstring>
#include <type_traits>

#include "tests/property/sim/sim_world.h"

namespace quire::sim {
namespace {

void DropInTheMiddle(const Case& c) {
  World world(c.config);
  for (size_t i = 0; i < c.ops.size() / 2; ++i) world.Apply(c.ops[i]);
}

}  // namespace

void RunSeeds(const SeedRange& range, Progress& progress) {
  static_assert(std::is_trivially_copyable_v<Coverage> &&
                sizeof(Coverage) <= sizeof progress.notes);
  Coverage coverage;
  uint64_t count = 0;
  for (uint64_t seed = range.first; count < range.max_seeds && progress.steps < range.steps;
       seed += range.stride, ++count) {
    progress.seed = seed;
    const Case c = DrawCase(seed);
    Result result = RunCase(c);
    if (result.problem.empty() && count % 16 == 3 && RunCase(c).decisions != result.decisions) {
      result.problem = "S9: the same case, other decisions";
    }
    if (count % 8 == 5) DropInTheMiddle(c);
    progress.steps += result.steps;
    coverage.Merge(result.coverage);
    std::memcpy(progress.notes, &coverage, sizeof coverage);
    if (!result.problem.empty()) {
      SetText(progress.problem, sizeof progress.problem, result.problem);
      return;
    }
  }
}

Coverage CoverageOf(const Progress& progress) {
  Coverage coverage;
  std::memcpy(&coverage, progress.notes, sizeof coverage);
  return coverage;
}

}  // namespace quire::sim
