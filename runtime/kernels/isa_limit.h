// Makes the kernels that Highway dispatches keep to our instruction-set level too. Their bits are
// the same on every level; this is for processors or machines whose higher sets are to be avoided.
#pragma once

#include <cstdint>

#include "runtime/base/cpu_features.h"

namespace quire {

// From now on no kernel of Highway's uses instructions above the level. Before threads use kernels.
void LimitHighway(IsaLevel isa);

// Highway's bits of the targets that it would still choose from; for tests.
int64_t HighwayTargets();

}  // namespace quire
