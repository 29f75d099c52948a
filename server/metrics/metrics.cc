#include "server/metrics/metrics.h"

#include <utility>

#include "prometheus/text_serializer.h"
#include "runtime/base/ids.h"
#include "server/metrics/books.h"
#include "server/metrics/family_builder.h"
#include "server/metrics/process_stats.h"

// One scrape loads each snapshot once, downstream first: what has ended (streams), what was
// accepted (steps), what was received (intake). A request is counted in that order's reverse, so
// the differences that are the gauges `live` and `intake` are exact at some moment of the scrape
// and never negative.
namespace quire {
namespace {

template <typename F>
auto Get(const F& source) -> decltype(source()) {
  return source ? source() : decltype(source()){};
}

struct Snapshot : Books {
  explicit Snapshot(const MetricsSources& sources) {
    streams = Get(sources.streams);
    steps = Get(sources.steps);
    intake = Get(sources.intake);
  }
  double in_intake() const {
    return static_cast<double>(intake.received - steps.accepted - SumOf(intake.rejected));
  }
  double live() const { return static_cast<double>(steps.accepted - FinishedRequests(streams)); }
  double utilization() const {
    return steps.blocks_total == 0 ? 0
                                   : static_cast<double>(steps.blocks_used) / steps.blocks_total;
  }
};

double D(uint64_t n) { return static_cast<double>(n); }

void AddIdentity(FamilyBuilder& b, const MetricsInfo& info) {
  b.PlainGauge("build_info", "Constant 1: what runs.")
      .Value(1, {{"version", info.version},
                 {"revision", info.revision},
                 {"isa", info.isa},
                 {"numeric_id", info.numeric_id}});
  b.Gauge("model_info", "Constant 1: the model.")
      .Value(1, {{"architecture", info.architecture},
                 {"quantization", info.quantization},
                 {"context_tokens", std::to_string(info.context_tokens)}});
  b.Gauge("kv_cache_config_info", "Constant 1: shape of the KV cache.")
      .Value(1, {{"block_size", std::to_string(kBlockTokens)},
                 {"num_blocks", std::to_string(info.num_blocks)},
                 {"dtype", info.kv_dtype}});
}

void AddState(FamilyBuilder& b, const MetricsSources& sources) {
  b.PlainGauge("ready", "1 while requests are served.").Value(Get(sources.ready) ? 1 : 0);
  b.PlainGauge("draining", "1 from the start of a shutdown.").Value(Get(sources.draining) ? 1 : 0);
  b.PlainGauge("engine_pulse_age_seconds",
               "Time since the last engine step while work is runnable; 0 when idle.")
      .Value(static_cast<double>(Get(sources.pulse_age_ns)) * 1e-9);
  b.PlainCounter("watchdog_stalls_total", "Times the engine was found stalled.")
      .Value(D(Get(sources.watchdog_stalls)));
  b.PlainCounter("log_lines_dropped_total", "Lines of the request log that nobody read in time.")
      .Value(D(Get(sources.log_lines_dropped)));
}

void AddLoad(FamilyBuilder& b, const Snapshot& s) {
  b.Gauge("sequences_running", "Sequences in the batch.").Value(s.steps.running);
  b.Gauge("sequences_waiting", "Sequences that wait, preempted and paused ones too.")
      .Value(s.steps.waiting);
  b.Gauge("waiting_tokens", "Uncomputed prompt tokens of waiting sequences.")
      .Value(static_cast<double>(s.steps.waiting_tokens));
  b.Gauge("kv_cache_utilization_ratio", "Used blocks of the KV cache; cached ones count as free.")
      .Value(s.utilization());
}

void AddRequests(FamilyBuilder& b, const Snapshot& s) {
  b.Gauge("requests_intake", "Requests received that are neither accepted nor rejected.")
      .Value(s.in_intake());
  b.Gauge("requests_live", "Requests accepted that have not ended.").Value(s.live());
  b.Gauge("kv_cache_blocks", "Blocks of the KV cache by state.")
      .Value(s.steps.blocks_free, {{"state", "free"}})
      .Value(s.steps.blocks_cached, {{"state", "cached"}})
      .Value(s.steps.blocks_used, {{"state", "used"}});
  b.Counter("requests_received_total", "Calls that ask for inference.").Value(D(s.intake.received));
  b.Counter("requests_accepted_total", "Requests that the scheduler took.")
      .Value(D(s.steps.accepted));
  b.Counter("requests_rejected_total", "Requests that ended before they were accepted, by reason.");
  for (size_t i = 0; i < kRejectReasons; ++i) {
    b.Value(D(s.intake.rejected[i]),
            {{"reason", std::string(RejectReasonName(static_cast<RejectReason>(i)))}});
  }
  b.Counter("requests_finished_total", "Accepted requests that ended, by outcome.");
  for (size_t i = 0; i < kOutcomeNames.size(); ++i) {
    b.Value(D(s.streams.finished[i]), {{"outcome", std::string(kOutcomeNames[i])}});
  }
  b.Counter("sequences_started_total", "Sequences that the scheduler took.")
      .Value(D(s.steps.sequences_started));
  b.Counter("sequences_finished_total", "Sequences that ended, by reason.");
  for (size_t i = 0; i < kSequenceEndNames.size(); ++i) {
    b.Value(D(s.steps.sequences_finished[i]), {{"reason", std::string(kSequenceEndNames[i])}});
  }
}

void AddTokens(FamilyBuilder& b, const Snapshot& s) {
  const StreamStats& d = s.streams;
  b.Counter("prompt_tokens_total", "Prompt tokens of requests whose prompt is done, by source.")
      .Value(D(d.prompt_tokens - d.cached_prompt_tokens), {{"source", "computed"}})
      .Value(D(d.cached_prompt_tokens), {{"source", "cached"}});
  b.Counter("generation_tokens_total", "Completion and stop tokens.").Value(D(d.generation_tokens));
  b.Counter("computed_tokens_total", "Token rows that the model computed, by kind.")
      .Value(D(s.steps.prefill_tokens), {{"kind", "prefill"}})
      .Value(D(s.steps.recompute_tokens), {{"kind", "recompute"}})
      .Value(D(s.steps.decode_tokens), {{"kind", "decode"}});
  b.Counter("discarded_tokens_total", "Tokens drawn and never delivered, by cause.")
      .Value(D(d.discarded_stop_lag), {{"cause", "stop_lag"}})
      .Value(D(d.discarded_ended), {{"cause", "ended"}});
  b.Counter("prefix_cache_query_tokens_total",
            "Prompt tokens looked up in the prefix cache, when a request is first admitted.")
      .Value(D(s.steps.prefix_query_tokens));
  b.Counter("prefix_cache_hit_tokens_total", "Prompt tokens found in the prefix cache.")
      .Value(D(s.steps.prefix_hit_tokens));
  b.Counter("kv_block_evictions_total", "Cached blocks that were taken for other tokens.")
      .Value(D(s.steps.block_evictions));
  b.Counter("preemptions_total", "Sequences that lost their blocks and are recomputed, by cause.");
  for (size_t i = 0; i < kPreemptionCauseNames.size(); ++i) {
    b.Value(D(s.steps.preemptions[i]), {{"cause", std::string(kPreemptionCauseNames[i])}});
  }
}

void AddLatency(FamilyBuilder& b, const Snapshot& s, double context) {
  const StreamStats& d = s.streams;
  b.HistogramFamily("time_to_first_token_seconds", "Call arrival to the first token.")
      .Value(d.time_to_first_token);
  b.HistogramFamily("inter_token_latency_seconds", "Between tokens of a sequence.")
      .Value(d.inter_token);
  b.HistogramFamily("time_per_output_token_seconds", "Mean time between the tokens of a sequence.")
      .Value(d.time_per_output_token);
  b.HistogramFamily("request_duration_seconds", "Call arrival to the end.").Value(d.request);
  b.HistogramFamily("request_intake_duration_seconds", "Call arrival to the queue.")
      .Value(d.intake);
  b.HistogramFamily("request_queue_duration_seconds", "Queue to the first grant.").Value(d.queue);
  b.HistogramFamily("request_prefill_duration_seconds", "First grant to the first token.")
      .Value(d.prefill);
  b.HistogramFamily("request_decode_duration_seconds", "First token to the end.").Value(d.decode);
  b.HistogramFamily("request_prompt_tokens", "Prompt tokens per request.")
      .Value(d.prompt, {}, context);
  b.HistogramFamily("request_generation_tokens", "Tokens per sequence.")
      .Value(d.generation, {}, context);
}

void AddSteps(FamilyBuilder& b, const StepStats& steps) {
  b.Counter("integrity_checks_total", "Checks of the server's own books while idle, by result.")
      .Value(D(steps.audits_ok), {{"result", "ok"}})
      .Value(D(steps.audits_failed), {{"result", "failed"}});
  b.HistogramFamily("step_duration_seconds", "Engine steps by phase.");
  for (size_t i = 0; i < kStepPhaseNames.size(); ++i) {
    b.Value(steps.step_seconds[i], {{"phase", std::string(kStepPhaseNames[i])}});
  }
  b.HistogramFamily("step_tokens", "Token rows per step.").Value(steps.step_tokens);
  b.HistogramFamily("step_sequences", "Sequences per step.").Value(steps.step_sequences);
  b.Counter("step_stage_seconds_total", "Where the engine's time goes.");
  for (size_t i = 0; i < kStepStageNames.size(); ++i) {
    b.Value(steps.stage_seconds[i], {{"stage", std::string(kStepStageNames[i])}});
  }
}

void AddMemory(FamilyBuilder& b, const MetricsInfo& info, const StreamStats& streams) {
  b.PlainGauge("stream_buffered_bytes", "Output that clients have not read yet.")
      .Value(static_cast<double>(streams.buffered_bytes));
  b.PlainGauge("streams_paused", "Requests that wait for a slow reader.").Value(streams.paused);
  b.PlainCounter("stream_pauses_total", "Times a slow reader made a request wait.")
      .Value(D(streams.pauses));
  b.PlainGauge("memory_bytes", "Memory held, by kind.")
      .Value(static_cast<double>(info.weights_bytes), {{"kind", "weights"}})
      .Value(static_cast<double>(info.kv_bytes), {{"kind", "kv"}})
      .Value(static_cast<double>(info.scratch_bytes), {{"kind", "scratch"}})
      .Value(static_cast<double>(streams.buffered_bytes), {{"kind", "streams"}})
      .Value(static_cast<double>(info.text_bytes), {{"kind", "text"}});
  b.PlainGauge("memory_limit_bytes", "Limit of the cgroup, or RAM.")
      .Value(static_cast<double>(info.memory_limit_bytes));
  b.PlainGauge("threads", "Kernel threads.").Value(info.threads);
}

void AddProcess(FamilyBuilder& b) {
  const ProcessStats process = ReadProcessStats();
  b.PlainCounter("cpu_throttled_seconds_total",
                 "Time the cgroup's CPU quota held the process back.")
      .Value(process.throttled_seconds);
  b.Bare("process_cpu_seconds_total", "User and system CPU time.", true).Value(process.cpu_seconds);
  b.Bare("process_resident_memory_bytes", "Resident memory.", false)
      .Value(static_cast<double>(process.resident_bytes));
  b.Bare("process_open_fds", "Open file descriptors.", false)
      .Value(static_cast<double>(process.open_fds));
  b.Bare("process_start_time_seconds", "Start of the process since the epoch.", false)
      .Value(process.start_time_seconds);
}

}  // namespace

Metrics::Metrics(MetricsInfo info, MetricsSources sources)
    : info_(std::move(info)), sources_(std::move(sources)) {}

std::vector<prometheus::MetricFamily> Metrics::Collect() const {
  // Calls end after their requests: loaded first, so they never exceed what the snapshots know.
  const std::vector<CallCount> calls = Get(sources_.calls);
  const Snapshot snapshot(sources_);
  FamilyBuilder b(info_.model);
  AddIdentity(b, info_);
  AddState(b, sources_);
  AddLoad(b, snapshot);
  AddRequests(b, snapshot);
  AddTokens(b, snapshot);
  AddLatency(b, snapshot, info_.context_tokens > 0 ? info_.context_tokens : 1e300);
  AddSteps(b, snapshot.steps);
  AddMemory(b, info_, snapshot.streams);
  AddProcess(b);
  if (!calls.empty()) b.PlainCounter("calls_total", "Ended calls by final gRPC code.");
  for (const CallCount& call : calls) {
    b.Value(D(call.count), {{"api", call.api}, {"method", call.method}, {"code", call.code}});
  }
  return b.Take();
}

std::string Metrics::Text() const { return prometheus::TextSerializer().Serialize(Collect()); }

std::string Metrics::LoadText() const {
  const Snapshot snapshot(sources_);
  FamilyBuilder b(info_.model);
  b.PlainGauge("ready", "1 while requests are served.").Value(Get(sources_.ready) ? 1 : 0);
  b.Gauge("kv_cache_config_info", "Constant 1: shape of the KV cache.")
      .Value(1, {{"block_size", std::to_string(kBlockTokens)},
                 {"num_blocks", std::to_string(info_.num_blocks)},
                 {"dtype", info_.kv_dtype}});
  AddLoad(b, snapshot);
  return prometheus::TextSerializer().Serialize(b.Take());
}

}  // namespace quire
