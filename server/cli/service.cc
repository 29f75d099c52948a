#include "server/cli/service.h"

#include <unistd.h>

#include <atomic>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "server/cli/model_stack.h"
#include "server/cli/request_log.h"
#include "server/cli/service_facts.h"
#include "server/cli/version.h"
#include "server/cli/watchdog.h"
#include "server/delivery/delivery.h"
#include "server/engine/engine.h"
#include "server/engine/intake.h"
#include "server/metrics/books.h"
#include "server/metrics/exposer.h"
#include "server/metrics/metrics.h"

namespace quire {

// Members are destroyed from the last to the first: whoever uses another room stands below it.
struct Service::State {
  explicit State(const ServerConfig& c)
      : config(c),
        tenants(TenantNames(c)),
        inbox({.sequences = c.max_live(), .waiting_tokens = c.max_waiting_tokens}) {}
  ~State() { Stop(absl::ZeroDuration(), absl::ZeroDuration()); }

  void Stop(absl::Duration drain, absl::Duration grace);
  HealthReport Report() const;
  absl::Status AuditBooks() const;

  const ServerConfig config;
  SteadyClock clock;
  std::unique_ptr<ModelStack> stack;
  Tenants tenants;
  CacheDomains domains;
  Inbox inbox;
  StepEvents events;
  std::unique_ptr<RequestLog> log;  // null: off
  Backend backend;
  std::unique_ptr<RpcServer> rpc;
  std::unique_ptr<Delivery> delivery;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Intake> intake;
  std::unique_ptr<Metrics> metrics;
  std::atomic<const Metrics*> scrape{nullptr};  // null while loading
  std::atomic<uint64_t> stalls{0};
  std::unique_ptr<Exposer> exposer;
  bool stopped = false;
};

namespace {

constexpr absl::Duration kFlushGrace = absl::Seconds(5);  // for clients to read their last message

constexpr absl::Duration kLastWords = absl::Seconds(1);  // for the log to take what it is given

uint64_t RandomNumber() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

HealthReport Service::State::Report() const {
  const ServerState state = rpc->health().state();
  HealthReport report{.live = rpc->health().live(), .started = scrape.load() != nullptr};
  report.ready = state == ServerState::kReady && report.live;
  report.why = state == ServerState::kLoading    ? "loading"
               : state == ServerState::kDraining ? "draining"
               : state == ServerState::kFaulty   ? "faulty"
               : report.ready                    ? ""
                                                 : "stalled";
  return report;
}

absl::Status Service::State::AuditBooks() const {
  Books books{.streams = delivery->Stats()};
  books.steps = engine->Stats();
  books.intake = intake->Stats();
  return CheckBooks(books);
}

void Service::State::Stop(absl::Duration drain, absl::Duration grace) {
  if (std::exchange(stopped, true)) return;
  if (intake != nullptr) DrainRequests(*intake, inbox, drain);
  if (rpc != nullptr) rpc->Shutdown(grace);
  if (intake != nullptr) intake->Stop();
  if (engine != nullptr) engine->Stop();
  if (delivery != nullptr) delivery->Stop();
  exposer.reset();
}

Service::Service(std::unique_ptr<State> state) : state_(std::move(state)) {}
Service::~Service() = default;

absl::StatusOr<std::unique_ptr<Service>> Service::Listen(const ServerConfig& config) {
  auto state = std::make_unique<State>(config);
  State& s = *state;
  RpcServerOptions options = {.listen = config.listen,
                              .identity = {.version = kVersion,
                                           .revision = kRevision,
                                           .instance_id = absl::StrFormat("%016x", RandomNumber())},
                              .clock = &s.clock,
                              .max_calls = config.effective_max_calls(),
                              .receive_message_bytes = config.receive_message_bytes,
                              .metadata_bytes = config.metadata_bytes,
                              .max_request_ms = config.max_request_ms,
                              .slow_reader_ms = config.slow_reader_ms,
                              .reflection = config.reflection_on()};
  options.identity.started = s.clock.Now();
  ASSIGN_OR_RETURN(s.rpc, RpcServer::Start(std::move(options)));
  if (config.http_listen != "off") {
    const auto body = [&s](std::string (Metrics::*text)() const) {
      const Metrics* metrics = s.scrape.load();
      return metrics == nullptr ? std::string() : (metrics->*text)();
    };
    ASSIGN_OR_RETURN(s.exposer,
                     Exposer::Start({.listen = config.http_listen,
                                     .health = [&s] { return s.Report(); },
                                     .metrics = [body] { return body(&Metrics::Text); },
                                     .load = [body] { return body(&Metrics::LoadText); }}));
  }
  return std::unique_ptr<Service>(new Service(std::move(state)));
}

absl::Status Service::Load(Progress progress) {
  State& s = *state_;
  ASSIGN_OR_RETURN(s.stack, ModelStack::Load(s.config, std::move(progress)));
  const ModelStack& stack = *s.stack;
  RequestLogger logger;
  if (s.config.request_log) {
    s.log = std::make_unique<RequestLog>(STDERR_FILENO, isatty(STDERR_FILENO) == 0);
    logger = [&log = *s.log](const RequestRecord& record) { log.Write(record); };
  }
  s.delivery = std::make_unique<Delivery>(
      DeliveryOptions{.stream_buffer_bytes = s.config.stream_buffer_bytes,
                      .slow_reader_ms = s.config.slow_reader_ms,
                      .flush = [&s] { s.rpc->Flush(); },
                      .retry_delay_ms = [&s] { return s.intake->RetryDelayMs(); },
                      .log = logger,
                      .initial = InitialStats(s.config)},
      DeliveryLinks{stack.tokenizer.get(), &s.inbox, &s.events, &s.clock});
  SchedulerOptions scheduler = SchedulerOptionsOf(s.config, stack);
  scheduler.cache_seed = RandomNumber();
  s.engine = std::make_unique<Engine>(scheduler,
                                      EngineLinks{.runner = stack.runner.get(),
                                                  .pool = stack.pool.get(),
                                                  .inbox = &s.inbox,
                                                  .events = &s.events,
                                                  .clock = &s.clock,
                                                  .audit = [&s] { return s.AuditBooks(); }},
                                      [&s](const StepStats& stats) { s.intake->SetLoad(stats); });
  s.intake =
      std::make_unique<Intake>(IntakeOptionsOf(s.config, stack),
                               IntakeLinks{stack.encoder.get(), &s.inbox, &s.events, &s.clock});
  s.metrics = std::make_unique<Metrics>(
      MetricsInfoOf(s.config, stack),
      MetricsSources{
          .streams = [&s] { return s.delivery->Stats(); },
          .steps = [&s] { return s.engine->Stats(); },
          .intake = [&s] { return s.intake->Stats(); },
          .calls = [&s] { return CallCounts(s.rpc->stats()); },
          .pulse_age_ns = [&s] { return s.engine->PulseAgeNs(); },
          .ready = [&s] { return s.Report().ready; },
          .draining = [&s] { return s.rpc->health().state() == ServerState::kDraining; },
          .watchdog_stalls = [&s] { return s.stalls.load(); },
          .log_lines_dropped = [&s] { return s.log == nullptr ? 0 : s.log->dropped(); }});
  s.backend = BackendOf(s.config, stack);
  s.backend.intake = s.intake.get();
  s.backend.inbox = &s.inbox;
  s.backend.delivery = s.delivery.get();
  s.backend.engine = s.engine.get();
  s.backend.clock = &s.clock;
  s.backend.tenants = &s.tenants;
  s.backend.domains = &s.domains;
  s.backend.log = logger;
  s.delivery->Start();
  s.engine->Start();
  s.intake->Start();
  s.scrape.store(s.metrics.get());
  s.rpc->Attach(&s.backend);
  return absl::OkStatus();
}

void Service::Drain() {
  state_->rpc->health().SetState(ServerState::kDraining);
  absl::SleepFor(state_->config.drain_delay);
  state_->Stop(state_->config.drain_timeout, kFlushGrace);
  if (state_->log != nullptr) state_->log->Flush(kLastWords);
}

void Service::EndAtOnce() {
  State& s = *state_;
  s.intake->StartDraining();
  s.delivery->EndAll(kLastWords);
  if (s.log != nullptr) s.log->Flush(kLastWords);
}

bool Service::CheckPulse() {
  State& s = *state_;
  if (s.engine == nullptr) return true;
  const Vitals vitals = {.pulse_age_ns = s.engine->PulseAgeNs(),
                         .slowest_step_s = s.stack->slowest_step_s,
                         .audits_failed = s.engine->Stats().audits_failed};
  return SetHealth(vitals, s.rpc->health(), s.stalls);
}

const std::vector<std::string>& Service::grpc_addresses() const { return state_->rpc->addresses(); }

int Service::http_port() const { return state_->exposer == nullptr ? 0 : state_->exposer->port(); }

std::string Service::Describe() const { return DescribeStack(state_->config, *state_->stack); }

}  // namespace quire
