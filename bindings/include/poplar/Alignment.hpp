// Rounding up to a multiple.
#pragma once
#include <cstddef>

namespace poplar {
template <class T> constexpr T roundUp(T value, T multiple) { return (value + multiple - 1) / multiple * multiple; }
} // namespace poplar
