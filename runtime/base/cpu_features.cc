#include "runtime/base/cpu_features.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/absl_view.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace quire {
namespace {

constexpr std::string_view kNames[] = {"scalar", "avx2", "avx512", "avx512_bf16", "amx"};
constexpr int32_t kUnset = -1;

std::atomic<int32_t> requested{kUnset};  // by SetIsa
std::atomic<int32_t> active{kUnset};

#if defined(__x86_64__)
struct CpuidLeaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuidLeaf Cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidLeaf r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx,
                    &r.edx);  // zeros if the leaf is not there
  return r;
}

uint64_t Xcr0() {
  uint32_t lo = 0, hi = 0;
  asm volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return (uint64_t{hi} << 32) | lo;
}

constexpr bool Has(uint64_t bits, uint64_t mask) { return (bits & mask) == mask; }
constexpr uint32_t Bit(int i) { return uint32_t{1} << i; }

IsaLevel Detect() {
  const CpuidLeaf l1 = Cpuid(1, 0), l7 = Cpuid(7, 0), l71 = Cpuid(7, 1);
  if (!Has(l1.ecx, Bit(27))) return IsaLevel::kScalar;  // OSXSAVE
  const uint64_t xcr0 = Xcr0();
  if (!Has(xcr0, 0x6) || !Has(l1.ecx, Bit(12) | Bit(28) | Bit(29)) || !Has(l7.ebx, Bit(5))) {
    return IsaLevel::kScalar;  // xmm and ymm state; FMA, AVX, F16C; AVX2
  }
  const bool f_dq_bw_vl = Has(l7.ebx, Bit(16) | Bit(17) | Bit(30) | Bit(31));
  if (!Has(xcr0, 0xe6) || !f_dq_bw_vl || !Has(l7.ecx, Bit(11))) return IsaLevel::kAvx2;
  if (!Has(l71.eax, Bit(5))) return IsaLevel::kAvx512;
  if (!Has(xcr0, 0x60000) || !Has(l7.edx, Bit(22) | Bit(24) | Bit(25)))
    return IsaLevel::kAvx512Bf16;
  return IsaLevel::kAmx;
}
#else
IsaLevel Detect() { return IsaLevel::kScalar; }
#endif

std::optional<IsaLevel> EnvironmentIsa() {
  const char* text = std::getenv("QUIRE_ISA");
  if (text == nullptr || *text == '\0') return std::nullopt;
  const absl::StatusOr<IsaLevel> isa = ParseIsa(text);
  return isa.ok() ? std::optional(*isa) : std::nullopt;
}

}  // namespace

std::string_view IsaName(IsaLevel isa) { return kNames[static_cast<int32_t>(isa)]; }

absl::StatusOr<IsaLevel> ParseIsa(std::string_view name) {
  for (int32_t i = 0; i < static_cast<int32_t>(std::size(kNames)); ++i) {
    if (name == kNames[i]) return IsaLevel{i};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown instruction set '", View(name), "'; known: scalar, avx2, avx512, avx512_bf16, amx"));
}

IsaLevel DetectedIsa() {
  static const IsaLevel detected = Detect();
  return detected;
}

IsaLevel ActiveIsa() {
  int32_t level = active.load(std::memory_order_acquire);
  if (level != kUnset) return IsaLevel{level};
  IsaLevel wanted = IsaLevel::kAmx;
  if (const int32_t set = requested.load(std::memory_order_acquire); set != kUnset) {
    wanted = IsaLevel{set};
  } else if (const std::optional<IsaLevel> from_env = EnvironmentIsa(); from_env.has_value()) {
    wanted = *from_env;
  }
  const int32_t chosen = static_cast<int32_t>(std::min(wanted, DetectedIsa()));
  // Two first callers agree: the first one to store decides.
  active.compare_exchange_strong(level, chosen, std::memory_order_acq_rel);
  return IsaLevel{active.load(std::memory_order_acquire)};
}

absl::Status CheckIsaEnvironment() {
  const char* text = std::getenv("QUIRE_ISA");
  if (text == nullptr || *text == '\0') return absl::OkStatus();
  const absl::StatusOr<IsaLevel> isa = ParseIsa(text);
  if (isa.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("QUIRE_ISA: ", isa.status().message()));
}

absl::Status SetIsa(IsaLevel isa) {
  requested.store(static_cast<int32_t>(isa), std::memory_order_release);
  const IsaLevel wanted = std::min(isa, DetectedIsa());
  if (const IsaLevel now = ActiveIsa(); now != wanted) {
    return absl::FailedPreconditionError(absl::StrCat("instruction set ", View(IsaName(now)),
                                                      " is in use already, wanted ",
                                                      View(IsaName(wanted))));
  }
  return absl::OkStatus();
}

bool HasFastBf16Dot() {
#if defined(__x86_64__)
  if (ActiveIsa() != IsaLevel::kAvx512Bf16) return false;
  const CpuidLeaf vendor = Cpuid(0, 0);  // "AuthenticAMD"
  return vendor.ebx == 0x68747541 && vendor.edx == 0x69746e65 && vendor.ecx == 0x444d4163;
#else
  return false;
#endif
}

std::string CpuBrand() {
#if defined(__x86_64__)
  if (Cpuid(0x80000000u, 0).eax >= 0x80000004u) {
    char text[49] = {};
    for (uint32_t i = 0; i < 3; ++i) {
      const CpuidLeaf leaf = Cpuid(0x80000002u + i, 0);
      std::memcpy(text + 16 * i, &leaf, 16);
    }
    return std::string(absl::StripAsciiWhitespace(text));
  }
#endif
  return "unknown";
}

}  // namespace quire
