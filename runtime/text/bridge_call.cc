#include "runtime/text/bridge_call.h"

#include "absl/log/log.h"
#include "runtime/base/error_info.h"

namespace quire {

absl::Status BridgeStatus(QuireBridgeCode code, const BridgeBytes& error, std::string_view reason) {
  switch (code) {
    case QUIRE_BRIDGE_OK:
      return absl::OkStatus();
    case QUIRE_BRIDGE_INVALID:
    case QUIRE_BRIDGE_RAISED:
    case QUIRE_BRIDGE_BUDGET:
      return MakeError(absl::StatusCode::kInvalidArgument, error.view(),
                       {.reason = std::string(reason), .metadata = {}, .violations = {}});
    case QUIRE_BRIDGE_INTERNAL:
      break;
  }
  LOG(ERROR) << "the text bridge failed: " << std::string(error.view());
  return absl::InternalError("the text library failed");
}

}  // namespace quire
