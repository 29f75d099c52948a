// absl::Status <-> grpc::Status, the one place where errors take their wire form: ErrorInfo,
// BadRequest, RetryInfo, QuotaFailure, ResourceInfo and PreconditionFailure in
// grpc-status-details-bin. Pure; any thread.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace quire {

inline constexpr size_t kMaxStatusDetailBytes = 4096;  // clients cap all metadata at 8 KiB

// Codes that we never send (UNKNOWN, ABORTED, OUT_OF_RANGE, DATA_LOSS) become INTERNAL.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The other way round, for clients: GetErrorInfo of the result gives the details back.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace quire
