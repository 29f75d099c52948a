// A world: one seeded run of random traffic on the production scheduler with a fake model, small
// pool and clock. Every step is checked against a shadow of who waits, who runs and what each
// client should see. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/testing/mix.h"
#include "tests/testing/step_driver.h"

namespace quire {

// What a client knows of its request.
struct Client {
  Request request;
  std::vector<SequenceId> ids;  // one per output
  bool paused = false;
  FinishReason abort = FinishReason::kNone;
  bool aborted_in_step = false;  // between Schedule and Commit
};

// Facts about a step that the checks need, taken around it.
struct StepFacts {
  MonotonicTime now;
  StepPlan plan;                             // views live until Commit
  std::vector<SequenceId> waiting, running;  // before the step, by arrival
};

class World {
 public:
  explicit World(uint64_t seed);

  // Traffic with faults, then everything resumed and run to the end. Returns the first violated
  // property, or "".
  std::string Run();

  // The parts of it, for worlds that are enumerated instead of drawn.
  explicit World(const StepDriverOptions& options);
  void Submit(Request request);
  void Abort(uint64_t id, FinishReason reason);
  void Pause(uint64_t id, bool paused);
  void Step(bool abort_inside = false);
  std::string Finish();
  const std::string& problem() const { return problem_; }

 private:
  void RandomOperation();
  Request RandomRequest();
  void Require(bool condition, const std::string& what);
  Client* AnyClient();
  bool Ended(SequenceId id) const;
  bool Paused(SequenceId id) const;
  bool Started(SequenceId id) const;
  // traffic_checks.cc
  void CheckPlan(const StepFacts& facts);
  void CheckProgress(const StepFacts& facts);
  void CheckAdmission(const StepFacts& facts);
  void MoveShadow(const StepPlan& plan);
  void CheckEvents(const StepFacts& facts);
  void CheckOutputs();
  void CheckEnd(const Client& client, const Output& output);
  void CheckAlone(const Client& client, SequenceId id);

  TestRandom random_;
  StepDriverOptions options_;
  std::unique_ptr<StepDriver> driver_;
  std::map<RequestId, Client> clients_;        // accepted ones; ids ascend with arrival
  std::vector<SequenceId> waiting_, running_;  // shadow, by arrival
  std::map<SequenceId, bool> started_;
  uint64_t next_id_ = 1;
  int64_t now_ = 1000;
  std::string problem_;
};

// The options of a seed.
StepDriverOptions RandomOptions(uint64_t seed);

}  // namespace quire
