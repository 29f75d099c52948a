// Instruction-set level of this process: what the processor and the system offer, lowered on
// request. One level selects every kernel table, so two runs with one level compute the same bits.
// Any thread; the level is fixed by the first ActiveIsa().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quire {

// Each level includes the ones before it.
enum class IsaLevel : int32_t {
  kScalar = 0,      // x86-64 baseline or any other processor
  kAvx2 = 1,        // AVX2, FMA, F16C
  kAvx512 = 2,      // + AVX-512 F, BW, DQ, VL, VNNI
  kAvx512Bf16 = 3,  // + AVX512_BF16
  kAmx = 4,         // + AMX tile, bf16, int8
};

// "scalar", "avx2", "avx512", "avx512_bf16", "amx".
std::string_view IsaName(IsaLevel isa);
// INVALID_ARGUMENT with the known names for any other text.
absl::StatusOr<IsaLevel> ParseIsa(std::string_view name);

// The highest level that CPUID and XCR0 both grant.
IsaLevel DetectedIsa();

// min(DetectedIsa(), SetIsa's level or else the environment's QUIRE_ISA). An unknown QUIRE_ISA is
// ignored here: start-up code reports it through CheckIsaEnvironment().
IsaLevel ActiveIsa();

// OK if QUIRE_ISA is unset, empty or a known name.
absl::Status CheckIsaEnvironment();

// Asks for a level instead of the environment's; it can only lower the detected one.
// FAILED_PRECONDITION if ActiveIsa() was already used with another result.
absl::Status SetIsa(IsaLevel isa);

// Whether vdpbf16ps multiplies faster than f32 fma on this processor, at the active level. It does
// on AMD, one instruction per cycle; Intel's cores run it at a quarter of fma's rate and count on
// AMX instead (BM_Tile and BM_PrefillLayer of tests/bench/kernels_attention_bench.cc force either).
bool HasFastBf16Dot();

// Processor name as CPUID gives it, "unknown" where there is none.
std::string CpuBrand();

}  // namespace quire
