#include "../scheduler/b.h"
