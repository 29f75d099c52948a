// S8: what each tenant has had of the service, by weight, counted from what was seen to start and
// to be drawn. Who had less goes first (sim_order.cc).
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/property/sim/sim_world.h"

namespace quire::sim {
namespace {

constexpr double kOutputCost = 2;  // of a token that is drawn, in tokens of a prompt

}  // namespace

double World::WeightOf(int32_t tenant) const {
  return tenant == 0 ? config_.weight_0 : tenant == 1 ? config_.weight_1 : 1;
}

double& World::HadOf(const ShadowSeq& seq) {
  return had_.at(static_cast<size_t>(seq.owner->request.tenant));
}

// Who comes with nothing in the queue begins where the least of those in it is; if it is empty,
// where the last one that started is. Nobody saves up what it did not ask for.
void World::LiftShare(int32_t tenant) {
  double least = std::numeric_limits<double>::infinity();
  bool waits = false, any = false;
  ForEachSeq([&](const ShadowSeq& seq) {
    if (seq.running || seq.unforked()) return;
    any = true;
    waits = waits || seq.owner->request.tenant == tenant;
    least = std::min(least, HadOf(seq));
  });
  if (waits) return;
  double& had = had_.at(static_cast<size_t>(tenant));
  had = std::max(had, any ? least : had_.at(static_cast<size_t>(last_tenant_)));
}

// A prompt is charged once, without what was cached of it.
void World::ChargeStart(const ShadowSeq& seq) {
  if (seq.started || seq.unforked()) return;
  last_tenant_ = seq.owner->request.tenant;
  HadOf(seq) += (seq.num_prompt() - seq.hit_now) / WeightOf(last_tenant_);
}

void World::ChargeDraw(const ShadowSeq& seq) {
  HadOf(seq) += kOutputCost / WeightOf(seq.owner->request.tenant);
}

void World::CheckShares() {
  for (size_t i = 0; i < had_.size(); ++i) {
    const double charged = scheduler_.Tenants()[i].charged;
    Require(std::abs(charged - had_[i]) <= 1e-9 * (1 + had_[i]),
            absl::StrCat("S8: tenant ", i, " had ", had_[i], " of the service, charged ", charged));
  }
}

}  // namespace quire::sim
