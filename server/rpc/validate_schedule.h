// The part of validation that says how a request is scheduled and cached: priority, prefix cache,
// KV policy. Pure; any thread.
#pragma once

#include "quire/v1/inference.pb.h"
#include "server/rpc/validate.h"
#include "server/rpc/violations.h"

namespace quire {

void ReadCacheOptions(const v1::CacheOptions& cache, ValidRequest* out, Violations* violations);
void ReadKvPolicy(const v1::KvPolicy& policy, const RequestLimits& limits, ValidRequest* out,
                  Violations* violations);
// `caller` has what the call's metadata asks for; a request that disagrees with it is a violation.
void ReadPriority(const v1::GenerateRequest& request, const Caller& caller, ValidRequest* out,
                  Violations* violations);

}  // namespace quire
