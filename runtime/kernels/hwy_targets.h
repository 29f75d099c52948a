// Which Highway targets our elementwise kernels are built for: the levels of cpu_features.h and a
// baseline. Include before hwy/foreach_target.h, and instead of hwy/targets.h. Products are Mul
// then Add, never MulAdd, which only some targets fuse.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR)
#include <hwy/targets.h>
