// What stands at a unix: address before gRPC binds it: gRPC unlinks whatever it finds, so a second
// server would steal the socket of a running one. Start-up thread.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace quire {

// OK for addresses that are not "unix:PATH", and if nothing is at the path; a socket that nobody
// listens on is removed. UNAVAILABLE, with the path, if somebody listens, or it is no socket.
absl::Status ClaimUnixAddress(std::string_view address);

}  // namespace quire
