#include "scheduler/fair_share.h"

#include <algorithm>
#include <limits>

#include "absl/log/check.h"
#include "scheduler/sequence.h"

namespace quire {

FairShare::FairShare(std::span<const double> weights) : tenants_(kMaxTenants) {
  CHECK_LE(weights.size(), tenants_.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    CHECK_GT(weights[i], 0);
    tenants_[i].weight = weights[i];
  }
}

void FairShare::Arrive(int32_t tenant, std::span<Sequence* const> waiting) {
  double least = std::numeric_limits<double>::infinity();
  for (const Sequence* sequence : waiting) {
    if (sequence->request->tenant == tenant) return;
    least = std::min(least, charged(sequence->request->tenant));
  }
  // An empty queue: where service had come to.
  if (waiting.empty()) least = charged(last_);
  At(tenant).charged = std::max(charged(tenant), least);
}

void FairShare::ChargePrompt(int32_t tenant, int64_t tokens) {
  At(tenant).charged += static_cast<double>(tokens) / At(tenant).weight;
  last_ = tenant;
}

void FairShare::ChargeOutput(int32_t tenant) {
  At(tenant).charged += kOutputCost / At(tenant).weight;
}

}  // namespace quire
