// Ended calls by method and final gRPC code: counted by the calls, read by metrics. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace quire {

enum class RpcMethod : uint8_t {
  kGenerate,
  kTokenize,
  kDetokenize,
  kEmbed,
  kScore,
  kAbort,
  kGetModel,
  kGetServerInfo,
  kGetLoad,
  kGetTokenizer,
  kSubscribeKvEvents,
};
inline constexpr std::array<std::string_view, 11> kRpcMethodNames = {
    "Generate", "Tokenize",     "Detokenize",       "Embed",
    "Score",    "Abort",        "GetModel",         "GetServerInfo",
    "GetLoad",  "GetTokenizer", "SubscribeKvEvents"};
inline constexpr std::array<std::string_view, 17> kRpcCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

class RpcStats {
 public:
  // code: a grpc::StatusCode, 0..16.
  void Count(RpcMethod method, size_t code) {
    calls_[static_cast<size_t>(method)][code].fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t calls(size_t method, size_t code) const {
    return calls_[method][code].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::array<std::atomic<uint64_t>, kRpcCodeNames.size()>, kRpcMethodNames.size()>
      calls_{};
};

}  // namespace quire
