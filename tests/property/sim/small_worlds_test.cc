// Every sequence of up to seven operations on three requests and a pool of four blocks. Pruned are
// operations that do nothing (on requests that are over, or in the state they ask for) and orders
// of neighbours that cannot matter.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "absl/log/check.h"
#include "tests/property/sim/isolate.h"
#include "tests/property/sim/sim_world.h"

namespace quire::sim {
namespace {

constexpr uint32_t kRequests = 3;

struct SmallWorld {
  const char* name;
  Config config;
  Submit requests[kRequests];
};

const SmallWorld kWorlds[] = {
    {.name = "BlockEdges",
     .config = {.num_blocks = 4, .context_tokens = 192, .step_tokens = 70, .max_running = 3},
     .requests = {{.id = 1, .prompt = 62, .max_tokens = 4},
                  {.id = 2, .prompt = 126, .max_tokens = 4, .deadline = 50},
                  {.id = 3, .prompt = 5, .max_tokens = 2, .n = 2}}},
    {.name = "OnePrefix",
     .config = {.num_blocks = 4, .context_tokens = 256, .step_tokens = 64, .max_running = 2},
     .requests = {{.id = 1, .prompt = 64, .max_tokens = 2, .shared = 64},
                  {.id = 2, .prompt = 126, .max_tokens = 5, .shared = 66, .priority = 1},
                  {.id = 3, .prompt = 129, .max_tokens = 2, .shared = 64, .deadline = 50}}},
    {.name = "PrioritiesAndWindows",
     .config = {.num_blocks = 4,
                .context_tokens = 256,
                .step_tokens = 64,
                .max_running = 2,
                .max_bypasses = 1,
                .max_preemptions = 1},
     .requests = {{.id = 1, .prompt = 63, .max_tokens = 4, .n = 2},
                  {.id = 2, .prompt = 126, .max_tokens = 4, .priority = 1, .deadline = 50},
                  {.id = 3, .prompt = 129, .max_tokens = 2, .priority = 2, .window = 64}}},
};

// Operations by number: so that a path is a number too.
constexpr int kKinds = 13;
Op Operation(const SmallWorld& world, int number, bool paused) {
  const auto id = static_cast<uint32_t>(number % 3) + 1;
  switch (number / 3) {
    case 0:
      return Add(world.requests[id - 1]);
    case 1:
      return Abort(id);
    case 2:
      return paused ? Resume(id) : Stall(id);
    case 3:
      return number == 9    ? Step()
             : number == 10 ? Step(0, Fault::kAbort)
                            : Step(0, Fault::kNonFinite);
    default:
      return Tick(50);
  }
}

bool IsMessage(int number) { return number >= 3 && number < 9; }  // acts at the next step

struct Seen {  // of a world before it settles
  bool live[kRequests] = {}, paused[kRequests] = {};
  bool any = false;
};

// The path at hand is left where it can be read after a failed CHECK.
void Remember(const std::vector<Op>& path, Progress& progress) {
  const size_t count = path.size();
  static_assert(std::is_trivially_copyable_v<Op>);
  CHECK_LE(sizeof count + count * sizeof(Op), sizeof progress.notes);
  std::memcpy(progress.notes, &count, sizeof count);
  std::memcpy(progress.notes + sizeof count, path.data(), count * sizeof(Op));
}

std::vector<Op> Remembered(const Progress& progress) {
  size_t count = 0;
  std::memcpy(&count, progress.notes, sizeof count);
  std::vector<Op> path(count);
  std::memcpy(path.data(), progress.notes + sizeof count, count * sizeof(Op));
  return path;
}

class Explorer {
 public:
  Explorer(const SmallWorld& world, int depth, Progress& progress)
      : world_(world), depth_(depth), progress_(progress) {}

  void Explore() {
    path_.clear();
    Extend({});
  }

 private:
  void Extend(const Seen& seen) {
    if (static_cast<int>(path_.size()) == depth_) return;
    const int last = numbers_.empty() ? -1 : numbers_.back();
    for (int number = 0; number < kKinds && progress_.problem[0] == '\0'; ++number) {
      const int request = number % 3;
      if (number < 3 && submitted_[request]) continue;
      if (IsMessage(number) && !seen.live[request]) continue;
      if (number >= 9 && !seen.any) continue;
      if (number == 12 && last == 12) continue;
      if (IsMessage(number) && IsMessage(last) && number < last && last % 3 != request) continue;
      path_.push_back(Operation(world_, number, seen.paused[request]));
      numbers_.push_back(number);
      if (number < 3) submitted_[request] = true;
      Extend(Run());
      if (number < 3) submitted_[request] = false;
      numbers_.pop_back();
      path_.pop_back();
    }
  }

  Seen Run() {
    ++progress_.seed;  // worlds
    Remember(path_, progress_);
    World world(world_.config);
    for (const Op& op : path_) world.Apply(op);
    Seen seen;
    for (uint32_t i = 0; i < kRequests; ++i) {
      const ShadowRequest* request = world.Find(i + 1);
      seen.live[i] = request != nullptr && request->abort == FinishReason::kNone;
      seen.paused[i] = request != nullptr && request->paused;
      seen.any = seen.any || request != nullptr;
    }
    world.Settle();
    progress_.steps += world.result().steps;
    if (world.failed()) {
      SetText(progress_.problem, sizeof progress_.problem, world.result().problem);
    }
    return seen;
  }

  const SmallWorld& world_;
  const int depth_;
  Progress& progress_;
  std::vector<Op> path_;
  std::vector<int> numbers_;
  bool submitted_[kRequests] = {};
};

class SmallWorlds : public testing::TestWithParam<SmallWorld> {};
INSTANTIATE_TEST_SUITE_P(All, SmallWorlds, testing::ValuesIn(kWorlds),
                         [](const auto& info) { return std::string(info.param.name); });

// QUIRE_SIM_DEPTH asks for another length.
TEST_P(SmallWorlds, EverySequenceOfSevenOperationsKeepsEveryRule) {
  const char* asked = std::getenv("QUIRE_SIM_DEPTH");
  const int depth = asked == nullptr ? 7 : std::atoi(asked);
  const auto work = [&](Progress& progress) { Explorer(GetParam(), depth, progress).Explore(); };
  const Progress progress = RunIsolated(work, 3600);
  EXPECT_STREQ(progress.problem, "")
      << ToCode({GetParam().config, Remembered(progress)}, "SmallWorld");
  std::printf("%llu worlds, %lld steps\n", static_cast<unsigned long long>(progress.seed),
              static_cast<long long>(progress.steps));
  if (depth >= 7) {
    EXPECT_GE(progress.seed, 100'000u);
  }
}

}  // namespace
}  // namespace quire::sim
