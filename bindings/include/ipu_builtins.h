// The tile's builtins. They are there without this header too.
#pragma once
#include <ipudef.h>
#include <popcore/builtins.hpp>
