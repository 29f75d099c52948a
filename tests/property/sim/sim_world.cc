#include "tests/property/sim/sim_world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/testing/mix.h"
#include "tests/testing/requests.h"
#include "tests/testing/scheduler_peer.h"

namespace quire::sim {
namespace {

FakeModelOptions ModelOptions(const Config& config) {
  FakeModelOptions options;
  options.limits = {.num_blocks = config.num_blocks,
                    .vocab_size = kVocab,
                    .context_tokens = config.context_tokens,
                    .max_rows = config.step_tokens,
                    .max_seqs = config.max_running,
                    .max_logits_rows = config.max_running};
  options.fatal = false;
  if (config.nan_rows) options.nan_row = IsNanRow;
  return options;
}

MonotonicTime After(int64_t now, int32_t nanos) {
  return nanos < 0 ? MonotonicTime::kInfinite : MonotonicTime{now + nanos};
}

}  // namespace

SchedulerOptions Config::Options() const {
  SchedulerOptions options;
  options.context_tokens = context_tokens;
  options.step_tokens = step_tokens;
  options.max_running = max_running;
  options.max_waiting = max_waiting;
  options.max_waiting_tokens = max_waiting_tokens;
  options.max_queue_ns = max_queue_ns;
  options.prefix_cache = prefix_cache;
  options.cache_hash_bits = hash_bits;
  options.target_itl_ns = target_itl_ns;
  options.queue = {
      .fcfs = fcfs,
      .ageing_ns = ageing_ns,
      .max_bypasses = max_bypasses,
      .max_preemptions = max_preemptions,
      .tenant_weights = {static_cast<double>(weight_0), static_cast<double>(weight_1)}};
  return options;
}

World::World(const Config& config)
    : config_(config),
      scheduler_(config.Options(), config.num_blocks),
      runner_(ModelOptions(config)),
      builder_(runner_.Limits()),
      holders_(static_cast<size_t>(config.num_blocks)),
      copy_into_(static_cast<size_t>(config.num_blocks)),
      blocks_(static_cast<size_t>(config.num_blocks)) {}

void World::Fail(std::string_view what) {
  result_.problem = absl::StrCat("step ", result_.steps, ": ") + std::string(what);
}

const ShadowRequest* World::Find(uint32_t id) const {
  const auto found = std::ranges::find_if(
      live_, [&](const auto& request) { return request->request.id == RequestId{id}; });
  return found == live_.end() ? nullptr : found->get();
}

ShadowSeq* World::FindSeq(const SequenceId& id) {
  for (const auto& request : live_) {
    if (request->request.id != id.request) continue;
    if (id.output_index < 0 || id.output_index >= request->request.num_sequences) return nullptr;
    return &request->seqs[static_cast<size_t>(id.output_index)];
  }
  return nullptr;
}

Request World::MakeSimRequest(const Submit& submit) const {
  Request request = MakeRequest(submit.id, 1, submit.max_tokens);
  const int32_t shared = std::min(submit.shared, submit.prompt);
  request.prompt = RandomTokens(0xfa111e5u + static_cast<uint64_t>(submit.family), shared, kVocab);
  if (submit.follows > 0 && submit.follows < wholes_.size()) {
    request.prompt = wholes_[submit.follows];
    if (request.prompt.size() > static_cast<size_t>(submit.prompt))
      request.prompt.resize(static_cast<size_t>(submit.prompt));
  }
  const std::vector<TokenId> own =
      RandomTokens(submit.id, submit.prompt - static_cast<int32_t>(request.prompt.size()), kVocab);
  request.prompt.insert(request.prompt.end(), own.begin(), own.end());
  request.num_sequences = submit.n;
  request.priority = submit.priority;
  request.tenant = submit.tenant;
  request.cache_domain = {.hi = static_cast<uint64_t>(submit.tenant),
                          .lo = static_cast<uint64_t>(submit.domain)};
  request.cache_bypass = submit.bypass;
  request.kv = {.window_tokens = submit.window, .sink_tokens = submit.sinks};
  request.arrival = MonotonicTime{now_};
  request.deadline = After(now_, submit.deadline);
  request.time_limit = After(now_, submit.time_limit);
  request.sampling.temperature = submit.sampled ? 1.0f : 0.0f;
  if (submit.min_tokens >= 0) {
    request.stop.eos_ids.assign(1, kEndToken);
    request.stop.min_tokens = submit.min_tokens;
  }
  return request;
}

// Tokens that a request may have in all: of the context, and of the pool unless its window fits it.
int32_t World::LimitTokens(const Request& request) const {
  const int32_t pool = config_.num_blocks * kBlockTokens;
  const KvPolicy& kv = request.kv;
  if (kv.window_tokens > 0) {
    // Sinks, a window that begins anywhere in a block, and a block for a chunk.
    const int32_t sinks = (kv.sink_tokens + kBlockTokens - 1) / kBlockTokens;
    const int32_t window = (kv.window_tokens - 1 + 2 * kBlockTokens - 1) / kBlockTokens;
    if (sinks + window + 1 <= config_.num_blocks) return config_.context_tokens;
  }
  return std::min(config_.context_tokens, pool);
}

// S7 and the bounds of the queue, restated.
absl::StatusCode World::ExpectedVerdict(const Request& request) const {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  if (prompt + 1 > LimitTokens(request)) return absl::StatusCode::kInvalidArgument;
  int64_t waiting = 0, tokens = 0;
  bool any_queued = false;
  for (const auto& other : live_) {
    for (const ShadowSeq& seq : other->seqs) {
      if (seq.ended || seq.running) continue;
      ++waiting;
      any_queued = any_queued || !seq.unforked();
      tokens += seq.unforked() ? 0 : seq.uncomputed();
    }
  }
  const bool many = waiting + request.num_sequences > config_.max_waiting;
  const bool long_queue = any_queued && tokens + prompt > config_.max_waiting_tokens;
  return many || long_queue ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk;
}

// Of what a refused request must leave alone: A10, L3.
uint64_t World::StateHash() {
  const SchedulerStats stats = scheduler_.Stats();
  uint64_t hash = Mix(static_cast<uint64_t>(stats.running), static_cast<uint64_t>(stats.waiting));
  hash = Mix(hash, static_cast<uint64_t>(stats.waiting_tokens));
  hash = Mix(hash, static_cast<uint64_t>(stats.sequences_started));
  hash = Mix(hash, static_cast<uint64_t>(stats.blocks_cached));
  const BlockPool& pool = SchedulerTestPeer::Pool(scheduler_);
  for (int32_t i = 0; i < pool.total(); ++i)
    hash = Mix(hash, static_cast<uint64_t>(pool.ref_count(BlockId{i})));
  return hash;
}

void World::DoSubmit(const Submit& submit) {
  Request request = MakeSimRequest(submit);
  const absl::StatusCode expected = ExpectedVerdict(request);
  const uint64_t before = StateHash();
  const absl::Status status = scheduler_.Add(request);
  Require(status.code() == expected, absl::StrCat("S7: Add says ", status.ToString()));
  result_.coverage.accepted += status.ok();
  result_.coverage.too_large += status.code() == absl::StatusCode::kInvalidArgument;
  result_.coverage.refused += status.code() == absl::StatusCode::kResourceExhausted;
  if (!status.ok()) {
    Require(StateHash() == before, "A10: a refused request left a trace");
    return;
  }
  LiftShare(request.tenant);
  auto& shadow = live_.emplace_back(std::make_unique<ShadowRequest>());
  shadow->request = std::move(request);
  shadow->open = submit.n;
  shadow->arrival = arrivals_++;
  started_ += submit.n;
  std::vector<SoloOutput> alone =
      RunAlone(shadow->request,
               {.limit_tokens = LimitTokens(shadow->request), .nan_rows = config_.nan_rows});
  for (int32_t i = 0; i < submit.n; ++i) {
    ShadowSeq& seq = shadow->seqs.emplace_back();
    seq.id = {shadow->request.id, i};
    seq.owner = shadow.get();
    seq.pinned = config_.max_preemptions == 0;
    seq.expected = std::move(alone[static_cast<size_t>(i)]);
    seq.whole = shadow->request.prompt;
    seq.whole.insert(seq.whole.end(), seq.expected.tokens.begin(), seq.expected.tokens.end());
  }
  if (wholes_.size() <= submit.id) wholes_.resize(submit.id + 1);
  wholes_[submit.id] = shadow->seqs.front().whole;
}

void World::DoAbort(uint32_t id, FinishReason reason) {
  scheduler_.Abort(RequestId{id}, reason);
  auto* request = const_cast<ShadowRequest*>(Find(id));
  if (request == nullptr) return;
  if (request->abort == FinishReason::kNone) request->abort = reason;
  for (ShadowSeq& seq : request->seqs) {
    if (seq.abort == FinishReason::kNone) seq.abort = reason;
  }
}

// Of an output whose text has come to its end: so it has a token.
void World::DoAbortOutput(uint32_t id, int32_t output, FinishReason reason) {
  ShadowSeq* seq = FindSeq({RequestId{id}, output});
  if (seq == nullptr || seq->received == 0) return;
  scheduler_.AbortOutput(seq->id, reason);
  ++result_.coverage.output_aborts;
  if (seq->abort == FinishReason::kNone) seq->abort = reason;
}

void World::DoPause(uint32_t id, bool paused) {
  scheduler_.SetPaused(RequestId{id}, paused);
  if (auto* request = const_cast<ShadowRequest*>(Find(id))) request->paused = paused;
}

void World::Apply(const Op& op) {
  if (failed()) return;
  switch (op.kind) {
    case OpKind::kSubmit:
      DoSubmit(op.submit);
      break;
    case OpKind::kAbort:
      if (op.output >= 0) {
        DoAbortOutput(op.id, op.output, op.reason);
      } else {
        DoAbort(op.id, op.reason);
      }
      break;
    case OpKind::kStall:
      DoPause(op.id, true);
      break;
    case OpKind::kResume:
      DoPause(op.id, false);
      break;
    case OpKind::kTick:
      now_ += op.nanos;
      break;
    case OpKind::kDrain:
      ++result_.coverage.drains;
      for (const auto& request : live_) {
        DoAbort(static_cast<uint32_t>(request->request.id), FinishReason::kShutdown);
      }
      break;
    case OpKind::kEvict: {
      auto& state = SchedulerTestPeer::Get(scheduler_);
      state.cache.EnsureFree(std::min(op.blocks, state.pool.num_available()));
      break;
    }
    case OpKind::kStep:
      DoStep(op);
      break;
  }
  CheckWakeUp();
}

// S4: whoever is first of those that run advances by a token a step. It loses its work only to one
// of higher rank, and a bounded number of times: so the work of all, so many times, bounds the wait
// of the last.
void World::Settle() {
  int64_t work = 4;
  for (const auto& request : live_) {
    DoPause(static_cast<uint32_t>(request->request.id), false);
    for (const ShadowSeq& seq : request->seqs)

      work += (2 + config_.max_preemptions) * (static_cast<int64_t>(seq.whole.size()) + 1);
  }
  for (int64_t step = 0; scheduler_.HasWork() && !failed(); ++step) {
    Require(step <= work, "S4: work is left, and no end in sight");
    Apply(Step());
  }
  if (!failed()) CheckNothingLeft();
}

Result RunCase(const Case& c) {
  World world(c.config);
  for (const Op& op : c.ops) {
    world.Apply(op);
    if (world.failed()) return world.result();
  }
  world.Settle();
  return world.result();
}

}  // namespace quire::sim
