#include "runtime/base/ids.h"
