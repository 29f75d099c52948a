#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/server/metrics/exposition.h"

namespace quire {
namespace {

MetricsInfo Info() {
  return {.version = "1",
          .revision = "r",
          .isa = "avx2",
          .numeric_id = "n",
          .model = "m \"quoted\"",
          .architecture = "llama",
          .quantization = "Q4_1",
          .kv_dtype = "f32",
          .context_tokens = 8192,
          .num_blocks = 32,
          .threads = 2,
          .weights_bytes = 1000,
          .kv_bytes = 2000,
          .scratch_bytes = 300,
          .text_bytes = 40,
          .memory_limit_bytes = 1 << 30};
}

// Numbers as after some traffic: 10 received, 3 refused, 6 accepted, 1 in intake.
MetricsSources Busy() {
  StreamStats streams;
  streams.finished[static_cast<size_t>(Outcome::kOk)] = 3;
  streams.finished[static_cast<size_t>(Outcome::kCancelled)] = 1;
  streams.generation_tokens = 12;
  streams.sequences_with_token = streams.requests_with_token = 3;
  for (int i = 0; i < 9; ++i) streams.inter_token.Observe(0.02);
  for (int i = 0; i < 3; ++i) streams.time_to_first_token.Observe(0.1);
  for (int i = 0; i < 4; ++i) streams.request.Observe(1);
  streams.prompt.Observe(100);
  StepStats steps;
  steps.accepted = 6;
  steps.running = 1;
  steps.waiting = 1;
  steps.sequences_started = 6;
  steps.sequences_finished[static_cast<size_t>(SequenceEnd::kStop)] = 4;
  steps.blocks_total = 32;
  steps.blocks_used = 8;
  steps.blocks_free = 24;
  steps.prefill_tokens = 30;
  steps.decode_tokens = 9;
  steps.step_tokens.Observe(30);
  steps.step_tokens.Observe(9);
  IntakeStats intake;
  intake.received = 10;
  intake.rejected[static_cast<size_t>(RejectReason::kFieldInvalid)] = 2;
  intake.rejected[static_cast<size_t>(RejectReason::kQueueTokensFull)] = 1;
  return {.streams = [streams] { return streams; },
          .steps = [steps] { return steps; },
          .intake = [intake] { return intake; },
          .calls =
              [] {
                return std::vector<CallCount>{{"quire", "Generate", "OK", 3},
                                              {"quire", "Generate", "CANCELLED", 1}};
              },
          .pulse_age_ns = [] { return int64_t{1'500'000'000}; },
          .ready = [] { return true; },
          .draining = [] { return false; },
          .watchdog_stalls = [] { return uint64_t{0}; }};
}

TEST(Metrics, TheIdentitiesHoldInOneScrape) {
  const Exposition e(Metrics(Info(), Busy()).Text());
  EXPECT_EQ(e.Sum("quire_requests_received_total"), e.Sum("quire_requests_accepted_total") +
                                                        e.Sum("quire_requests_rejected_total") +
                                                        e.Sum("quire_requests_intake"));
  EXPECT_EQ(e.Sum("quire_requests_accepted_total"),
            e.Sum("quire_requests_finished_total") + e.Sum("quire_requests_live"));
  EXPECT_EQ(e.Sum("quire_sequences_started_total"), e.Sum("quire_sequences_finished_total") +
                                                        e.Sum("quire_sequences_running") +
                                                        e.Sum("quire_sequences_waiting"));
  EXPECT_EQ(e.Sum("quire_kv_cache_blocks"), 32);
  EXPECT_EQ(e.Sum("quire_computed_tokens_total"), e.Sum("quire_step_tokens_sum"));
  EXPECT_EQ(e.Sum("quire_inter_token_latency_seconds_count"),
            e.Sum("quire_generation_tokens_total") - 3);
  EXPECT_EQ(e.Sum("quire_request_duration_seconds_count"), e.Sum("quire_requests_finished_total"));
  EXPECT_EQ(e.Value("quire_requests_rejected_total", "reason=\"FIELD_INVALID\""), 2);
  EXPECT_EQ(e.Value("quire_requests_rejected_total", "reason=\"QUEUE_TOKENS_FULL\""), 1);
  EXPECT_EQ(e.Sum("quire_requests_intake"), 1);
  EXPECT_EQ(e.Sum("quire_requests_live"), 2);
}

TEST(Metrics, GaugesSayWhatTheSnapshotsSay) {
  const Exposition e(Metrics(Info(), Busy()).Text());
  EXPECT_EQ(e.Sum("quire_kv_cache_utilization_ratio"), 0.25);
  EXPECT_EQ(e.Sum("quire_engine_pulse_age_seconds"), 1.5);
  EXPECT_EQ(e.Sum("quire_ready"), 1);
  EXPECT_EQ(e.Sum("quire_draining"), 0);
  EXPECT_EQ(e.Value("quire_memory_bytes", "kind=\"kv\""), 2000);
  EXPECT_EQ(e.Value("quire_calls_total", "code=\"CANCELLED\""), 1);
  EXPECT_GT(e.Sum("process_resident_memory_bytes"), 0);
  EXPECT_GT(e.Sum("process_open_fds"), 0);
  EXPECT_GT(e.Sum("process_start_time_seconds"), 1e9);
}

TEST(Metrics, SeriesAreTheSameBeforeAndAfterTraffic) {
  MetricsSources idle = Busy();
  idle.streams = [] { return StreamStats{}; };
  idle.steps = [] { return StepStats{}; };
  idle.intake = [] { return IntakeStats{}; };
  EXPECT_EQ(Exposition(Metrics(Info(), idle).Text()).Series(),
            Exposition(Metrics(Info(), Busy()).Text()).Series());
}

TEST(Metrics, WorksWithoutSourcesWhileLoading) {
  const Exposition e(Metrics({}, {}).Text());
  EXPECT_EQ(e.Sum("quire_ready"), 0);
  EXPECT_EQ(e.Sum("quire_requests_live"), 0);
  EXPECT_EQ(e.Sum("quire_kv_cache_utilization_ratio"), 0);
}

TEST(Metrics, HistogramsAreCumulativeAndEndWithTheCount) {
  const Exposition e(Metrics(Info(), Busy()).Text());
  EXPECT_EQ(e.Value("quire_inter_token_latency_seconds_bucket", "le=\"0.015\""), -1)
      << "no such bucket";
  EXPECT_EQ(e.Value("quire_inter_token_latency_seconds_bucket", "le=\"0.01\""), 0);
  EXPECT_EQ(e.Value("quire_inter_token_latency_seconds_bucket", "le=\"0.025\""), 9);
  EXPECT_EQ(e.Value("quire_inter_token_latency_seconds_bucket", "le=\"+Inf\""), 9);
  EXPECT_EQ(e.Value("quire_request_prompt_tokens_bucket", "le=\"5000\""), 1);
  EXPECT_EQ(e.Value("quire_request_prompt_tokens_bucket", "le=\"10000\""), -1)
      << "beyond the context";
}

TEST(Metrics, LatencyHistogramsHaveTheBoundsTheyWereGiven) {
  constexpr std::array<double, 3> kBounds = {0.1, 0.25, 30};
  StreamStats streams;
  streams.request = LatencyCounts(kBounds);
  for (const double seconds : {0.05, 0.1, 0.2, 31.0}) streams.request.Observe(seconds);
  MetricsSources sources = Busy();
  sources.streams = [streams] { return streams; };
  const Exposition e(Metrics(Info(), sources).Text());
  const char* name = "quire_request_duration_seconds_bucket";
  EXPECT_EQ(e.Value(name, "le=\"0.1\""), 2) << "a bound is part of its bucket";
  EXPECT_EQ(e.Value(name, "le=\"0.25\""), 3);
  EXPECT_EQ(e.Value(name, "le=\"30\""), 3);
  EXPECT_EQ(e.Value(name, "le=\"+Inf\""), 4);
  EXPECT_EQ(e.Value(name, "le=\"0.5\""), -1) << "no others";
}

TEST(Metrics, EveryNameIsOursAndTheBodyIsSmall) {
  const std::string text = Metrics(Info(), Busy()).Text();
  EXPECT_LE(text.size(), 64u << 10);
  for (const std::string& series : Exposition(text).Series()) {
    EXPECT_TRUE(series.starts_with("quire_") || series.starts_with("process_")) << series;
  }
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_LE(Metrics(Info(), Busy()).LoadText().size(), 4096u);
}

TEST(Metrics, PromtoolFindsNothing) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "promtool is not installed";
  const std::string path = testing::TempDir() + "/quire_metrics_" + std::to_string(getpid());
  std::ofstream(path) << Metrics(Info(), Busy()).Text();
  const std::string command = "promtool check metrics < " + path + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) output += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << output;
  EXPECT_EQ(output, "");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace quire
