#include "runtime/kernels/isa_limit.h"

#include "runtime/kernels/hwy_targets.h"

namespace quire {

void LimitHighway(IsaLevel isa) {
#if HWY_ARCH_X86
  // A lower bit is a better target; targets at least as good as a level's are refused below it.
  int64_t refused = 0;
  if (isa < IsaLevel::kAvx512) refused |= (HWY_AVX3 << 1) - 1;
  if (isa < IsaLevel::kAvx2) refused |= (HWY_AVX2 << 1) - 1;
  hwy::DisableTargets(refused);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
#else
  (void)isa;
#endif
}

int64_t HighwayTargets() { return hwy::SupportedTargets(); }

}  // namespace quire
