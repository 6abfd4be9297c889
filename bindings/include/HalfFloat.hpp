// An older place of poplar/HalfFloat.hpp.
#pragma once
#include <poplar/HalfFloat.hpp>
