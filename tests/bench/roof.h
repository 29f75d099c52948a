// What a kernel reaches, beside what this machine can do (runtime/probe), measured by one thread
// when the first benchmark asks.
#pragma once

#include "benchmark/benchmark.h"

namespace quire {

enum class Arithmetic { kInt8, kFloat };

// Counters of a benchmark that does `ops` operations on `bytes` bytes per iteration: GOPS, GBps,
// and of_roof, the larger of its shares of the arithmetic and of the memory roof.
void ReportWork(benchmark::State& state, double ops, double bytes, Arithmetic arithmetic);

}  // namespace quire
