// S8 as tenants see it: of a batch that is always wanted by all, each gets its share by weight,
// whoever sends more, longer or sooner.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "tests/property/sim/sim_world.h"
#include "tests/testing/mix.h"

namespace quire::sim {
namespace {

constexpr int32_t kMaxRunning = 4, kMostPrompt = 120, kMostOutput = 40;

struct Tenant {
  int32_t backlog = 1;  // requests that it always has in the queue
  int32_t most_prompt = 0, most_output = 0;
  std::vector<uint32_t> waiting{};
};

Config ShareConfig(TestRandom& random) {
  return {.num_blocks = 64,
          .step_tokens = 128,
          .max_running = kMaxRunning,
          .max_waiting = 64,
          .max_waiting_tokens = 64 * kMostPrompt,
          .ageing_ns = random.Chance(50) ? 0 : 50,
          .weight_0 = random.Between(1, 4),
          .weight_1 = random.Between(1, 4)};
}

// A tenant is chosen when none has had less, and then has its prompt and the outputs of all that it
// runs charged: by so much two that always wait can be apart.
double Bound(const Config& config) {
  const double most = kMostPrompt + 2.0 * kMostOutput * kMaxRunning;
  return most / std::min({config.weight_0, config.weight_1, 1});
}

TEST(FairShares, OfAFullBatchGoByWeightWhateverAFloodBrings) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    TestRandom random(seed);
    const Config config = ShareConfig(random);
    World world(config);
    std::array<Tenant, kTenants> tenants;
    for (Tenant& tenant : tenants) {
      tenant = {.backlog = random.Between(1, 12),
                .most_prompt = random.Between(1, kMostPrompt),
                .most_output = random.Between(1, kMostOutput)};
    }
    const auto least = [&] { return std::min({world.had(0), world.had(1), world.had(2)}); };
    const auto most = [&] { return std::max({world.had(0), world.had(1), world.had(2)}); };
    uint32_t id = 1;
    int64_t steps = 0;
    while (least() < 10 * Bound(config) && ++steps < 20'000) {
      for (int32_t t = 0; t < kTenants; ++t) {
        Tenant& tenant = tenants[static_cast<size_t>(t)];
        std::erase_if(tenant.waiting, [&](uint32_t waiting) {
          return world.Find(waiting) == nullptr || world.Find(waiting)->seqs[0].started;
        });
        while (static_cast<int32_t>(tenant.waiting.size()) < tenant.backlog) {
          tenant.waiting.push_back(id);
          world.Apply(Add({.id = id++,
                           .prompt = random.Between(1, tenant.most_prompt),
                           .max_tokens = random.Between(1, tenant.most_output),
                           .tenant = t}));
        }
      }
      world.Apply(Step(1));
      ASSERT_EQ(world.result().problem, "") << "seed " << seed;
      ASSERT_LE(most() - least(), Bound(config)) << "seed " << seed << ", step " << steps;
    }
    EXPECT_LT(steps, 20'000) << "somebody is starved";
  }
}

}  // namespace
}  // namespace quire::sim
