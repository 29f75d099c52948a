// Intake, engine and delivery wired as the server wires them, over the fake model; with or without
// threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/delivery/delivery.h"
#include "server/engine/engine.h"
#include "server/engine/intake.h"
#include "tests/testing/fake_model_runner.h"
#include "tests/testing/fake_sink.h"
#include "tests/testing/fake_tokenizer.h"

namespace quire {

struct PipelineOptions {
  FakeModelOptions model;
  SchedulerOptions scheduler{
      .context_tokens = 512, .step_tokens = 32, .max_running = 8, .max_waiting = 64};
  DeliveryOptions delivery;
  int32_t max_live = 64;
  int32_t default_max_tokens = 20;
};

class Pipeline {
 public:
  explicit Pipeline(PipelineOptions options = {}, const Clock* clock = nullptr)
      : clock_(clock != nullptr ? clock : &steady_),
        runner(options.model),
        tokenizer(Pieces(options.model.limits.vocab_size)),
        encoder(&tokenizer, nullptr),
        inbox(options.max_live),
        intake({.capacity = {options.scheduler.context_tokens, options.model.limits.num_blocks},
                .vocab_size = options.model.limits.vocab_size,
                .eos_ids = tokenizer.eos_ids(),
                .default_max_tokens = options.default_max_tokens},
               {&encoder, &inbox, &events, clock_}),
        engine(options.scheduler,
               {.runner = &runner, .inbox = &inbox, .events = &events, .clock = clock_},
               [this](const StepStats& s) { intake.SetLoad(s); }),
        delivery(options.delivery, {&tokenizer, &inbox, &events, clock_}) {}
  ~Pipeline() { Stop(); }

  void Start() {
    delivery.Start();
    engine.Start();
    intake.Start();
  }
  void Stop() {
    intake.Stop();
    engine.Stop();
    delivery.Stop();
  }

  struct Call {
    RequestId id;
    std::shared_ptr<FakeSink> sink;
    absl::Status status;  // of Submit
  };
  static ValidRequest Ask(std::string prompt, int32_t max_tokens) {
    ValidRequest request;
    request.id = NextRequestId();
    request.prompt.source = std::move(prompt);
    request.prompt.add_special_tokens = false;
    request.sampling.temperature = 0;
    request.stop.max_tokens = max_tokens;
    request.stop.ignore_eos = true;
    return request;
  }
  Call Submit(ValidRequest request, StreamSpec spec = {}) {
    Call call{request.id, std::make_shared<FakeSink>(), absl::OkStatus()};
    request.arrival = clock_->Now();
    spec.id = request.id;
    spec.arrival = request.arrival;
    spec.stop_strings = request.stop.stop_strings;
    delivery.Open(std::move(spec), call.sink);
    call.status = intake.Submit(std::move(request));
    if (!call.status.ok()) delivery.Discard(call.id);
    return call;
  }

  // One for every id of the fake model that the fake tokenizer has no token for; some split code
  // points.
  static std::vector<std::string> Pieces(int32_t vocab_size) {
    std::vector<std::string> pieces;
    for (int32_t id = FakeTokenizer::kFirstPiece; id < vocab_size; ++id) {
      pieces.push_back(id % 3 == 0   ? "\xF0\x9F"
                       : id % 3 == 1 ? "\x98\x80"
                                     : " word" + std::to_string(id));
    }
    return pieces;
  }

 private:
  SteadyClock steady_;
  const Clock* clock_;

 public:
  FakeModelRunner runner;
  FakeTokenizer tokenizer;
  PromptEncoder encoder;
  StepEvents events;
  Inbox inbox;
  Intake intake;
  Engine engine;
  Delivery delivery;
};

}  // namespace quire
