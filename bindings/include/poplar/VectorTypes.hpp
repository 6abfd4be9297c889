// Short vector types, under the name that Poplar sources include them by.
#pragma once
#include <ipudef.h>
