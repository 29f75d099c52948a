#include "server/rpc/rpc_core.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/error_info.h"

namespace quire {
namespace {

constexpr int64_t kRetryMs = 1000;

}  // namespace

absl::Status Unavailable(const std::string& reason, const std::string& message) {
  return MakeError(
      absl::StatusCode::kUnavailable, message,
      {.reason = reason, .metadata = {}, .violations = {}, .retry_delay_ms = kRetryMs});
}

absl::Status MethodUnsupported(RpcMethod method) {
  const std::string name(kRpcMethodNames[static_cast<size_t>(method)]);
  return MakeError(
      absl::StatusCode::kUnimplemented, absl::StrCat(name, " is not in this build"),
      {.reason = "METHOD_UNSUPPORTED", .metadata = {{"method", name}}, .violations = {}});
}

absl::StatusOr<const Backend*> RpcCore::Ready() const {
  const Backend* ready = backend.load(std::memory_order_acquire);
  if (ready == nullptr) return Unavailable("LOADING", "the model is being loaded");
  const ServerState state = health.state();
  if (state == ServerState::kStalled) return Unavailable("STALLED", "the engine makes no progress");
  if (state == ServerState::kFaulty) return Unavailable("FAULTY", "the server found itself faulty");
  return ready;
}

absl::Status CallSlot::status() const {
  if (taken_) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted,
                   absl::StrCat("too many calls in flight; the cap is ", core_.max_calls),
                   {.reason = "CALLS_FULL",
                    .metadata = {{"limit", absl::StrCat(core_.max_calls)}},
                    .violations = {},
                    .retry_delay_ms = kRetryMs});
}

}  // namespace quire
