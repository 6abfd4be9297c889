// Loop counters for hardware repeat instructions; here a plain count.
#pragma once
#include <ipudef.h>
