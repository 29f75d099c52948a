#include "scheduler/a.h"
