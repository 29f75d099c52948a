#include "runtime/probe/rates.h"

#include "runtime/base/cpu_features.h"

// Instructions are written out, so that neither the optimiser nor the build preset changes what is
// measured, and so that this file needs no instruction-set flags.
namespace quire {
namespace {

#if defined(__x86_64__)

constexpr double kAccumulators = 12;  // enough independent chains to hide the latency

double Int8Avx512(int64_t rounds) {
  asm volatile(
      "vpxord %%zmm0, %%zmm0, %%zmm0\n\t"
      "1:\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm1\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm2\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm3\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm4\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm5\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm6\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm7\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm8\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm9\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm10\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm11\n\t"
      "vpdpbusd %%zmm0, %%zmm0, %%zmm12\n\t"
      "dec %0\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(rounds)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12");
  return kAccumulators * 64 * 2;
}

// The pair that AVX2 kernels live on: 16-bit products of neighbours, then an addition.
double Int8Avx2(int64_t rounds) {
  asm volatile(
      "vpxor %%ymm0, %%ymm0, %%ymm0\n\t"
      "1:\n\t"
      "vpmaddubsw %%ymm0, %%ymm0, %%ymm13\n\t"
      "vpaddw %%ymm13, %%ymm1, %%ymm1\n\t"
      "vpmaddubsw %%ymm0, %%ymm0, %%ymm14\n\t"
      "vpaddw %%ymm14, %%ymm2, %%ymm2\n\t"
      "vpmaddubsw %%ymm0, %%ymm0, %%ymm15\n\t"
      "vpaddw %%ymm15, %%ymm3, %%ymm3\n\t"
      "vpmaddubsw %%ymm0, %%ymm0, %%ymm13\n\t"
      "vpaddw %%ymm13, %%ymm4, %%ymm4\n\t"
      "vpmaddubsw %%ymm0, %%ymm0, %%ymm14\n\t"
      "vpaddw %%ymm14, %%ymm5, %%ymm5\n\t"
      "vpmaddubsw %%ymm0, %%ymm0, %%ymm15\n\t"
      "vpaddw %%ymm15, %%ymm6, %%ymm6\n\t"
      "dec %0\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(rounds)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm13", "xmm14", "xmm15");
  return 6 * 32 * 2;
}

#endif

}  // namespace

uint64_t ReadLines(const std::byte* data, size_t bytes) {
  using Line = uint64_t __attribute__((vector_size(64), aligned(64)));
  const auto* line = reinterpret_cast<const Line*>(data);
  Line sum[4] = {};
  const size_t count = bytes / sizeof(Line);
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (size_t j = 0; j < 4; ++j) sum[j] ^= line[i + j];
  }
  for (; i < count; ++i) sum[0] ^= line[i];
  sum[0] ^= sum[1] ^ sum[2] ^ sum[3];
  uint64_t all = 0;
  for (int j = 0; j < 8; ++j) all ^= sum[0][j];
  return all;
}

double RunInt8Rounds([[maybe_unused]] int64_t rounds) {
#if defined(__x86_64__)
  if (rounds > 0 && ActiveIsa() >= IsaLevel::kAvx512)
    return Int8Avx512(rounds) * static_cast<double>(rounds);
  if (rounds > 0 && ActiveIsa() >= IsaLevel::kAvx2)
    return Int8Avx2(rounds) * static_cast<double>(rounds);
#endif
  return 0;
}

void RunAddChain(int64_t count) {
#if defined(__x86_64__)
  uint64_t value = 0;
  int64_t loops = count / 16;
  if (loops <= 0) return;
  asm volatile(
      "1:\n\t"
      ".rept 16\n\t"
      "add %2, %0\n\t"
      ".endr\n\t"
      "dec %1\n\t"
      "jnz 1b"
      : "+r"(value), "+r"(loops)
      : "r"(uint64_t{1})
      : "cc");
#else
  volatile uint64_t value = 0;
  for (int64_t i = 0; i < count; ++i) value = value + 1;
#endif
}

}  // namespace quire
