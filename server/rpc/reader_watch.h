// Cancels a call whose client stops reading after its request has ended: nothing else would free
// its place, and the status waits behind the message that is not taken. One per Generate call;
// poller thread.
#pragma once

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "server/rpc/call_task.h"

namespace quire {

struct ReaderWatch {
  std::shared_ptr<Signal> request_ended;   // raised by the sink's OnEnd
  grpc::ServerContext* context = nullptr;  // valid until over
  int64_t patience_ms = 30'000;            // for one write
  int64_t writes = 0;                      // completed; counted by the call
  bool over = false;
  grpc::Alarm alarm;

  // The call has told gRPC its status: the context is about to go.
  void End() {
    over = true;
    alarm.Cancel();
  }
};

inline CallTask WatchReader(Poller& poller, std::shared_ptr<ReaderWatch> watch) {
  co_await *watch->request_ended;
  while (!watch->over) {
    const int64_t before = watch->writes;
    co_await Operation([&](void* tag) {
      watch->alarm.Set(poller.queue(),
                       gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                    gpr_time_from_millis(watch->patience_ms, GPR_TIMESPAN)),
                       tag);
    });
    if (!watch->over && watch->writes == before) watch->context->TryCancel();
  }
}

}  // namespace quire
