#include "scheduler/admission_order.h"

#include <algorithm>

#include "scheduler/priority.h"

namespace quire {

AdmissionOrder::AdmissionOrder(const QueuePolicy& policy, const FairShare& shares, size_t most)
    : policy_(policy), shares_(shares) {
  entries_.reserve(most);
}

void AdmissionOrder::Begin(std::span<Sequence* const> waiting, MonotonicTime now) {
  entries_.clear();
  int32_t top = kMinPriority;
  for (Sequence* sequence : waiting) {
    if (sequence->paused) continue;
    top = std::max(top, sequence->priority);
    entries_.push_back(
        {.sequence = sequence,
         .level = EffectivePriority(sequence->priority, sequence->request->arrival, now,
                                    policy_.ageing_ns),
         .owed = sequence->started || sequence->setbacks.bypasses >= policy_.max_bypasses});
  }
  // Ageing lifts a request to the highest priority that waits and not past it: among peers the age
  // must not outdo the shares, or a tenant's long backlog would shut out all others.
  for (Entry& entry : entries_) entry.level = std::min(entry.level, top);
}

Sequence* AdmissionOrder::Next() {
  if (entries_.empty()) return nullptr;
  const auto best = std::ranges::min_element(
      entries_, [this](const Entry& a, const Entry& b) { return Before(a, b); });
  Sequence* sequence = best->sequence;
  sequence->level = best->level;
  *best = entries_.back();
  entries_.pop_back();
  return sequence;
}

bool AdmissionOrder::Before(const Entry& a, const Entry& b) const {
  if (!policy_.fcfs) {
    if (a.level != b.level) return a.level > b.level;
    if (a.owed != b.owed) return a.owed;
    const double had_a = shares_.charged(a.sequence->request->tenant);
    const double had_b = shares_.charged(b.sequence->request->tenant);
    if (!a.owed && had_a != had_b) return had_a < had_b;
  }
  return a.sequence->order < b.sequence->order;
}

}  // namespace quire
