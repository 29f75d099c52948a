// C++ manners for the Rust bridge: slices of string_views, owned results, and its codes as a
// Status. Values only; any thread.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "runtime/text/bridge/quire_text_bridge.h"

namespace quire {

inline QuireBridgeSlice ToSlice(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view FromSlice(QuireBridgeSlice s) { return {s.data, s.size}; }

// A result or error message of the bridge, freed with it.
class BridgeBytes {
 public:
  BridgeBytes() = default;
  ~BridgeBytes() { quire_bridge_bytes_free(raw_); }
  BridgeBytes(const BridgeBytes&) = delete;
  BridgeBytes& operator=(const BridgeBytes&) = delete;

  QuireBridgeBytes* out() { return &raw_; }
  std::string_view view() const { return {raw_.data, raw_.size}; }

 private:
  QuireBridgeBytes raw_ = {};
};

// OK, or INVALID_ARGUMENT with the bridge's message and `reason` (may be empty), or INTERNAL for a
// caught panic, whose place goes to the log and not to the client.
absl::Status BridgeStatus(QuireBridgeCode code, const BridgeBytes& error, std::string_view reason);

}  // namespace quire
