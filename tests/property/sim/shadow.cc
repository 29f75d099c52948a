#include "tests/property/sim/shadow.h"

namespace quire::sim {

void Coverage::Merge(const Coverage& other) {
  accepted += other.accepted;
  too_large += other.too_large;
  refused += other.refused;
  preemptions += other.preemptions;
  paused_victims += other.paused_victims;
  recomputed += other.recomputed;
  aborts_in_step += other.aborts_in_step;
  stalls_in_step += other.stalls_in_step;
  failed_draws += other.failed_draws;
  nan_rows += other.nan_rows;
  timed_out_waiting += other.timed_out_waiting;
  timed_out_running += other.timed_out_running;
  queue_aged += other.queue_aged;
  drains += other.drains;
  pool_bound += other.pool_bound;
  whole += other.whole;
  hits += other.hits;
  copies += other.copies;
  replaced += other.replaced;
}

}  // namespace quire::sim
