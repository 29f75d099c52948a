// The value of --metrics-buckets: bounds of the buckets of latency histograms. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "server/config/server_config.h"

namespace quire {

// "NAME=BOUND,BOUND,..." for each of some histograms, in one text or in several. False: not so, or
// a name that is unknown or there twice, or bounds that are not 1..64 ascending finite seconds
// above 0. A name may have its prefix quire_.
bool ParseLatencyBuckets(const std::vector<std::string>& values, std::vector<LatencyBuckets>* out);

// What parses to the same.
std::string LatencyBucketsText(const std::vector<LatencyBuckets>& all);

}  // namespace quire
