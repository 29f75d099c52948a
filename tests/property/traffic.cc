#include "tests/property/traffic.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "tests/testing/requests.h"

namespace quire {
namespace {

constexpr int32_t kVocab = 48;
constexpr TokenId kEos{3};

FinishReason AnyAbortReason(TestRandom& random) {
  constexpr std::array kReasons = {FinishReason::kAborted, FinishReason::kCancelled,
                                   FinishReason::kSlowReader, FinishReason::kStop};
  return kReasons[static_cast<size_t>(random.Between(0, 3))];
}

}  // namespace

StepDriverOptions RandomOptions(uint64_t seed) {
  TestRandom random(seed ^ 0xabcdu);
  constexpr std::array kBudgets = {1, 2, 5, 16, 64, 128};
  StepDriverOptions options;
  options.scheduler = {.context_tokens = random.Between(0, 1) == 0 ? 200 : 1000,
                       .step_tokens = kBudgets[static_cast<size_t>(random.Between(0, 5))],
                       .max_running = random.Between(1, 6),
                       .max_waiting = random.Between(2, 10),
                       .max_waiting_tokens = random.Between(100, 2000),
                       .max_queue_ns = random.Between(50, 3000)};
  options.num_blocks = random.Between(2, 9);
  options.model.fatal = false;
  options.model.limits.vocab_size = kVocab;
  if (random.Chance(30)) {
    options.model.nan_row = [](const FakeRow& row) {
      return row.position % 61 == 17 && row.token == TokenId{5};
    };
  }
  return options;
}

World::World(uint64_t seed) : random_(seed), options_(RandomOptions(seed)) {
  driver_ = std::make_unique<StepDriver>(options_);
}

World::World(const StepDriverOptions& options) : random_(0), options_(options) {
  driver_ = std::make_unique<StepDriver>(options_);
}

void World::Require(bool condition, const std::string& what) {
  if (!condition && problem_.empty())
    problem_ = absl::StrCat("step ", driver_->runner().steps(), ": ", what);
}

bool World::Ended(SequenceId id) const {
  const auto found = driver_->outputs().find(id);
  return found != driver_->outputs().end() && found->second.finishes > 0;
}

bool World::Paused(SequenceId id) const { return clients_.at(id.request).paused; }
bool World::Started(SequenceId id) const { return started_.contains(id); }

Client* World::AnyClient() {
  if (clients_.empty()) return nullptr;
  // Mostly a recent one, since the old ones have ended.
  const auto back =
      random_.Between(0, std::min<int32_t>(5, static_cast<int32_t>(clients_.size()) - 1));
  return &std::prev(clients_.end(), back + 1)->second;
}

Request World::RandomRequest() {
  const int32_t edge = kBlockTokens * random_.Between(0, 3);
  const int32_t length =
      random_.Chance(50) ? random_.Between(1, 40) : std::max(1, edge + random_.Between(-2, 2));
  Request request = MakeRequest(
      next_id_, length, random_.Chance(50) ? random_.Between(1, 12) : random_.Between(1, 90));
  request.prompt = RandomTokens(random_.Next(), length, kVocab);
  request.num_sequences = random_.Chance(15) ? 2 : 1;
  request.sampling.temperature = random_.Chance(50) ? 1.0f : 0.0f;
  request.sampling.seed = random_.Next();
  request.arrival = MonotonicTime{now_};
  if (random_.Chance(30)) {
    request.stop.eos_ids = {kEos};
    request.stop.min_tokens = random_.Between(0, request.stop.max_tokens);
  }
  if (random_.Chance(10)) request.deadline = MonotonicTime{now_ + random_.Between(0, 800)};
  if (random_.Chance(10)) request.time_limit = MonotonicTime{now_ + random_.Between(0, 800)};
  return request;
}

void World::Submit(Request request) {
  request.id = RequestId{next_id_++};
  const SchedulerStats before = driver_->scheduler().Stats();
  const absl::Status status = driver_->scheduler().Add(request);
  driver_->scheduler().CheckInvariants();
  if (!status.ok()) {
    const SchedulerStats after = driver_->scheduler().Stats();
    Require(after.waiting == before.waiting && after.sequences_started == before.sequences_started,
            "a refused request left a trace");
    return;
  }
  Client client{.request = request, .ids = {}};
  for (int32_t i = 0; i < request.num_sequences; ++i) {
    client.ids.push_back({request.id, i});
    waiting_.push_back({request.id, i});
  }
  clients_.emplace(request.id, std::move(client));
}

void World::Abort(uint64_t id, FinishReason reason) {
  driver_->scheduler().Abort(RequestId{id}, reason);
  const auto found = clients_.find(RequestId{id});
  if (found != clients_.end() && found->second.abort == FinishReason::kNone)
    found->second.abort = reason;
}

void World::Pause(uint64_t id, bool paused) {
  driver_->scheduler().SetPaused(RequestId{id}, paused);
  const auto found = clients_.find(RequestId{id});
  if (found != clients_.end()) found->second.paused = paused;
}

void World::Step(bool abort_inside) {
  StepFacts facts{.now = MonotonicTime{now_}, .plan = {}, .waiting = waiting_, .running = running_};
  driver_->Begin(facts.now);
  facts.plan = driver_->plan();
  CheckPlan(facts);
  CheckAdmission(facts);
  CheckProgress(facts);
  MoveShadow(facts.plan);
  if (abort_inside && !facts.plan.seqs.empty()) {
    const RequestId id = facts.plan.seqs.back().id.request;
    Client& client = clients_.at(id);
    client.aborted_in_step = client.abort == FinishReason::kNone;
    Abort(static_cast<uint64_t>(id), FinishReason::kAborted);
  }
  driver_->End();
  CheckEvents(facts);
  for (const std::string& error : driver_->runner().errors()) Require(false, error);
}

void World::RandomOperation() {
  const int32_t dice = random_.Between(0, 99);
  Client* client = AnyClient();
  if (dice < 22) {
    Submit(RandomRequest());
  } else if (dice < 27 && client != nullptr) {
    Abort(static_cast<uint64_t>(client->request.id), AnyAbortReason(random_));
  } else if (dice < 33 && client != nullptr) {
    Pause(static_cast<uint64_t>(client->request.id), random_.Chance(60));
  } else if (dice < 36) {
    now_ += random_.Between(0, 300);
  } else {
    now_ += random_.Between(0, 9);
    Step(random_.Chance(3));
  }
}

std::string World::Run() {
  for (int i = 0; i < 150 && problem_.empty(); ++i) RandomOperation();
  return Finish();
}

// Faults are over: everything resumes, and must end within a bound.
std::string World::Finish() {
  int64_t work = 10;
  for (auto& [id, client] : clients_) {
    Pause(static_cast<uint64_t>(id), false);
    const auto rows =
        static_cast<int64_t>(client.request.prompt.size()) + client.request.stop.max_tokens;
    work += client.request.num_sequences * rows;
  }
  int64_t steps = 0;
  while (driver_->scheduler().HasWork() && problem_.empty()) {
    Require(++steps <= 3 * work, "work is left, and no end in sight");
    Step();
  }
  if (problem_.empty()) CheckOutputs();
  return problem_;
}

}  // namespace quire
