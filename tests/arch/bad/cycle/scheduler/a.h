#include "runtime/base/b.h"
