// Linear kernels on the shapes of SmolLM2-135M: bytes/s of weights at one row, operations/s at
// many. One thread. QUIRE_ISA selects the kernels. Weights rotate through a set larger than L2, as
// in a decode step.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "runtime/kernels/linear.h"
#include "runtime/tensor/arena.h"
#include "tests/bench/roof.h"

namespace quire {
namespace {

constexpr size_t kStreamBytes = size_t{96} << 20;

// Random packed bytes with tame scales: the kernels' speed does not depend on values, except for
// NaN.
void FillPanels(DType type, std::span<std::byte> bytes) {
  std::mt19937_64 rng(static_cast<uint64_t>(type));
  // 0x2c2c2c2c as f16 pairs, f32 and bytes is a small positive number.
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const uint64_t v = (rng() & 0x0303030303030303u) | 0x2c2c2c2c2c2c2c2cu;
    std::memcpy(bytes.data() + i, &v, 8);
  }
}

void BM_Linear(benchmark::State& state, DType type) {
  const auto n = static_cast<int32_t>(state.range(0)), k = static_cast<int32_t>(state.range(1));
  const auto m = static_cast<int32_t>(state.range(2));
  const size_t bytes = PackedBytes(type, n, k);
  const size_t copies = std::max<size_t>(1, kStreamBytes / bytes);
  Arena arena = *Arena::Create(bytes * copies + ActBufferBytes(m, k) + LinearScratchBytes() + 64 +
                               sizeof(float) * static_cast<size_t>(m) * static_cast<size_t>(n + k));
  std::vector<PackedMatrix> weights;
  for (size_t c = 0; c < copies; ++c) {
    const std::span<std::byte> data = arena.Take(bytes);
    FillPanels(type, data);
    weights.push_back({type, n, k, PanelBytes(type, k), data.data()});
  }
  const std::span<float> x = arena.TakeArray<float>(static_cast<size_t>(m) * k);
  const std::span<float> y = arena.TakeArray<float>(static_cast<size_t>(m) * n);
  const std::span<std::byte> scratch = arena.Take(LinearScratchBytes());
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(rng);
  const ActRows act = MakeActRows(arena.Take(ActBufferBytes(m, k)), m, k, x.data(), k);
  if (UsesQuantizedActivations(type)) QuantizeRows(act, 0, m);
  size_t c = 0;
  for (auto _ : state) {
    const PackedMatrix& w = weights[c];
    c = c + 1 == copies ? 0 : c + 1;
    Linear(w, {0, w.panels()}, act, {y.data(), n}, scratch);
    benchmark::ClobberMemory();
  }
  ReportWork(state, 2.0 * m * n * k, static_cast<double>(bytes),
             UsesQuantizedActivations(type) ? Arithmetic::kInt8 : Arithmetic::kFloat);
  state.SetLabel(std::string(IsaName(ActiveIsa())));
}

void Shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"N", "K", "M"});
  for (const auto& [n, k] : {std::pair{960, 576}, {576, 576}, {3072, 576}, {576, 1536}}) {
    for (const int m : {1, 8, 32, 128}) bench->Args({n, k, m});
  }
}
void LmHead(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"N", "K", "M"});
  for (const int m : {1, 8, 32}) bench->Args({49152, 576, m});
}
void OneShape(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"N", "K", "M"});
  for (const int m : {1, 8, 32, 128}) bench->Args({1536, 1536, m});
}

BENCHMARK_CAPTURE(BM_Linear, Q4_1, DType::kQ4_1)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Linear, Q8_0, DType::kQ8_0)->Apply(LmHead);
BENCHMARK_CAPTURE(BM_Linear, Q8_0, DType::kQ8_0)->Apply(OneShape);
BENCHMARK_CAPTURE(BM_Linear, Q4_0, DType::kQ4_0)->Apply(OneShape);
BENCHMARK_CAPTURE(BM_Linear, Q5_0, DType::kQ5_0)->Apply(OneShape);
BENCHMARK_CAPTURE(BM_Linear, Q5_1, DType::kQ5_1)->Apply(OneShape);
BENCHMARK_CAPTURE(BM_Linear, Q4_K, DType::kQ4_K)->Apply(OneShape);
BENCHMARK_CAPTURE(BM_Linear, Q5_K, DType::kQ5_K)->Apply(OneShape);
BENCHMARK_CAPTURE(BM_Linear, Q6_K, DType::kQ6_K)->Apply(OneShape);
BENCHMARK_CAPTURE(BM_Linear, F32, DType::kF32)->Apply(OneShape);
BENCHMARK_CAPTURE(BM_Linear, F16, DType::kF16)->Apply(OneShape);
BENCHMARK_CAPTURE(BM_Linear, BF16, DType::kBF16)->Apply(OneShape);

void BM_QuantizeRow(benchmark::State& state) {
  const auto k = static_cast<int32_t>(state.range(0));
  std::vector<float> x(static_cast<size_t>(k));
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(rng);
  std::vector<std::byte> buffer(ActBufferBytes(1, k));
  const ActRows act = MakeActRows(buffer, 1, k);
  for (auto _ : state) {
    QuantizeRow(x.data(), act, 0);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_QuantizeRow)->Arg(576)->Arg(1536);

}  // namespace
}  // namespace quire
