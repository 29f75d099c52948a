#include "tests/e2e/test_server.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/rpc/status_map.h"

namespace quire {
namespace {

constexpr std::chrono::seconds kPatience(
    60);  // for what must happen; never reached when all is well

std::multimap<std::string, std::string> Copy(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  std::multimap<std::string, std::string> out;
  for (const auto& [key, value] : metadata) {
    out.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  }
  return out;
}

}  // namespace

StepOutput GatedRunner::Forward(const StepBatch& batch) {
  {
    std::unique_lock lock(mutex_);
    held_ = closed_ && allowed_ == 0;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !closed_ || allowed_ > 0; });
    held_ = false;
    if (closed_) --allowed_;
  }
  return fake_.Forward(batch);
}

void GatedRunner::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  allowed_ = 0;
}

void GatedRunner::Allow(int steps) {
  const std::lock_guard lock(mutex_);
  allowed_ += steps;
  changed_.notify_all();
}

void GatedRunner::Open() {
  const std::lock_guard lock(mutex_);
  closed_ = false;
  changed_.notify_all();
}

bool GatedRunner::WaitUntilHeld() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [this] { return held_ && allowed_ == 0; });
}

FakeModelOptions TestServer::WithVocabulary(FakeModelOptions options, int32_t vocab_size) {
  options.limits.vocab_size = vocab_size;
  return options;
}

TestServer::TestServer(TestServerOptions options)
    : options_(std::move(options)),
      runner_(WithVocabulary(options_.model, tokenizer_.vocab_size())),
      tenants_(options_.tenants),
      inbox_({.sequences = options_.scheduler.max_running + options_.scheduler.max_waiting,
              .waiting_tokens = options_.scheduler.max_waiting_tokens}) {
  const RunnerLimits limits = runner_.Limits();
  absl::StatusOr<std::unique_ptr<RpcServer>> rpc =
      RpcServer::Start({.listen = {"127.0.0.1:0"},
                        .identity = {.version = "1.2.3", .revision = "abc", .instance_id = "test"},
                        .clock = &clock_,
                        .max_calls = options_.max_calls,
                        .receive_message_bytes = options_.receive_message_bytes,
                        .slow_reader_ms = options_.reader_patience_ms,
                        .reflection = options_.reflection});
  CHECK(rpc.ok()) << rpc.status();
  rpc_ = *std::move(rpc);
  delivery_ = std::make_unique<Delivery>(
      DeliveryOptions{.stream_buffer_bytes = options_.stream_buffer_bytes,
                      .slow_reader_ms = options_.slow_reader_ms,
                      .flush = [this] { rpc_->Flush(); }},
      DeliveryLinks{&tokenizer_, &inbox_, &events_, &clock_});
  SchedulerOptions scheduler = options_.scheduler;
  scheduler.context_tokens = limits.context_tokens;
  scheduler.step_tokens = limits.max_rows;
  engine_ = std::make_unique<Engine>(scheduler,
                                     EngineLinks{.runner = &runner_,
                                                 .inbox = &inbox_,
                                                 .events = &events_,
                                                 .clock = &clock_,
                                                 .audit = [this] { return CheckBooks(books()); }},
                                     [this](StepStats stats) {
                                       if (options_.rates.has_value())
                                         stats.rates = *options_.rates;
                                       intake_->SetLoad(stats);
                                     });
  IntakeOptions intake;
  intake.capacity = {.context_tokens = limits.context_tokens, .num_blocks = limits.num_blocks};
  intake.vocab_size = limits.vocab_size;
  intake.eos_ids = tokenizer_.eos_ids();
  intake.max_running = scheduler.max_running;
  intake.deadline_admission = options_.deadline_admission;
  intake_ = std::make_unique<Intake>(intake, IntakeLinks{&encoder_, &inbox_, &events_, &clock_});
  backend_.intake = intake_.get();
  backend_.inbox = &inbox_;
  backend_.delivery = delivery_.get();
  backend_.engine = engine_.get();
  backend_.encoder = &encoder_;
  backend_.tokenizer = &tokenizer_;
  backend_.clock = &clock_;
  backend_.tenants = &tenants_;
  backend_.domains = &domains_;
  backend_.card.context_tokens = limits.context_tokens;
  backend_.request_limits = {.model_names = {"fake"},
                             .vocab_size = limits.vocab_size,
                             .context_tokens = limits.context_tokens,
                             .max_prompt_bytes = options_.max_prompt_bytes,
                             .max_outputs = std::min(8, scheduler.max_running),
                             .kv_windows = true};
  backend_.service_limits.max_running = scheduler.max_running;
  backend_.isa = "fake-isa";
  delivery_->Start();
  engine_->Start();
  intake_->Start();
  if (options_.attach) Attach();
  channel_ = grpc::CreateChannel(address(), grpc::InsecureChannelCredentials());
  inference_ = v1::InferenceService::NewStub(channel_);
  model_ = v1::ModelService::NewStub(channel_);
}

TestServer::~TestServer() {
  runner_.Open();
  DrainRequests(*intake_, inbox_, absl::ZeroDuration());
  rpc_->Shutdown(absl::Seconds(1));
  intake_->Stop();
  engine_->Stop();
  delivery_->Stop();
}

bool TestServer::Drain(absl::Duration timeout) {
  rpc_->health().SetState(ServerState::kDraining);
  const bool all = DrainRequests(*intake_, inbox_, timeout);
  rpc_->Shutdown(absl::Seconds(5));
  return all;
}

Reply TestServer::Generate(
    const v1::GenerateRequest& request,
    const std::function<void(grpc::ClientContext&, const v1::GenerateResponse&)>& on_message,
    grpc::ClientContext* context) {
  grpc::ClientContext own;
  grpc::ClientContext& call = context == nullptr ? own : *context;
  Reply reply;
  const auto reader = inference_->Generate(&call, request);
  v1::GenerateResponse message;
  while (reader->Read(&message)) {
    reply.text += message.delta().text();
    for (const v1::TokenInfo& token : message.delta().tokens()) reply.ids.push_back(token.id());
    if (message.has_finished()) reply.finished = message.finished();
    if (message.has_usage()) reply.usage = message.usage();
    reply.messages.push_back(message);
    if (on_message) on_message(call, message);
  }
  reply.status = FromGrpcStatus(reader->Finish());
  reply.headers = Copy(call.GetServerInitialMetadata());
  reply.trailers = Copy(call.GetServerTrailingMetadata());
  return reply;
}

Books TestServer::books() const {
  Books books{.streams = delivery_->Stats()};  // downstream first, as a scrape does
  books.steps = engine_->Stats();
  books.intake = intake_->Stats();
  return books;
}

std::string TestServer::CheckIdle() {
  if (!inbox_.WaitUntilEmpty(absl::FromChrono(kPatience))) return "requests are still live";
  // The engine and the delivery publish their numbers a little after the last request has ended.
  for (int i = 0; i < 2000 && !WrongAtRest().empty(); ++i) absl::SleepFor(absl::Milliseconds(5));
  return WrongAtRest();
}

std::string TestServer::WrongAtRest() {
  const Books now = books();
  const StreamStats& streams = now.streams;
  const StepStats& steps = now.steps;
  const IntakeStats& intake = now.intake;
  const uint64_t finished = FinishedRequests(streams);
  uint64_t sequences = 0;
  for (const uint64_t n : steps.sequences_finished) sequences += n;
  const uint64_t rejected = SumOf(intake.rejected);
  std::string wrong;
  const auto expect = [&wrong](const char* what, int64_t got, int64_t wanted) {
    if (got != wanted) absl::StrAppend(&wrong, what, ": ", got, ", wanted ", wanted, "\n");
  };
  expect("running", steps.running, 0);
  expect("waiting", steps.waiting, 0);
  expect("used blocks", steps.blocks_used, 0);
  expect("free + cached blocks", steps.blocks_free + steps.blocks_cached, steps.blocks_total);
  expect("open streams", streams.open, 0);
  expect("buffered bytes", streams.buffered_bytes, 0);
  expect("received", static_cast<int64_t>(intake.received),
         static_cast<int64_t>(steps.accepted + rejected));
  expect("accepted", static_cast<int64_t>(steps.accepted), static_cast<int64_t>(finished));
  expect("sequences started", static_cast<int64_t>(steps.sequences_started),
         static_cast<int64_t>(sequences));
  expect("failed audits", static_cast<int64_t>(steps.audits_failed), 0);
  expect("reserved sequences", inbox_.reserved_sequences(), 0);
  expect("waiting tokens", inbox_.waiting_tokens(), 0);
  if (const absl::Status status = CheckBooks(now); !status.ok()) {
    absl::StrAppend(&wrong, status.message());
  }
  return wrong;
}

v1::GenerateRequest MakeGenerate(const std::string& prompt, uint32_t max_tokens) {
  v1::GenerateRequest request;
  request.mutable_prompt()->set_text(prompt);
  request.mutable_sampling()->set_temperature(0);
  request.mutable_stopping()->set_max_tokens(max_tokens);
  request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

}  // namespace quire
