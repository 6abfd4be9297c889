/* The C interface of codelets, under the name that sources include it by. */
#pragma once
#include "../../codelet_abi.h"
