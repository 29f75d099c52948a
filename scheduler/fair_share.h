// Which tenant has had least of the service, by weight: a virtual counter per tenant (as in
// "Fairness in Serving Large Language Models", Sheng et al., 2024). What is not cached of a
// prompt is charged when it starts, an output token when it is drawn; recomputed tokens are charged
// to nobody. A tenant that had nothing waiting begins at the smallest counter of those that have,
// so that nobody saves up service. Engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/queue_policy.h"

namespace quire {

struct Sequence;

struct TenantShare {
  double weight = 1;
  double charged = 0;  // service so far by weight, in prompt tokens; lifted when it comes back
  int64_t served_tokens = 0;  // rows computed for the first time, since start
};

class FairShare {
 public:
  // An output token takes about as long as so many tokens of a prompt.
  static constexpr double kOutputCost = 2;

  explicit FairShare(std::span<const double> weights);  // of the first tenants; the rest weigh 1

  // A request comes while `waiting` wait, of any tenants. tenant < kMaxTenants, here and below.
  void Arrive(int32_t tenant, std::span<Sequence* const> waiting);
  void ChargePrompt(int32_t tenant, int64_t tokens);
  void ChargeOutput(int32_t tenant);
  void CountServed(int32_t tenant, int64_t tokens) { At(tenant).served_tokens += tokens; }

  double charged(int32_t tenant) const { return tenants_[static_cast<size_t>(tenant)].charged; }
  std::span<const TenantShare> tenants() const { return tenants_; }  // [kMaxTenants]

 private:
  TenantShare& At(int32_t tenant) { return tenants_[static_cast<size_t>(tenant)]; }

  std::vector<TenantShare> tenants_;
  int32_t last_ = 0;  // whose prompt started last
};

}  // namespace quire
