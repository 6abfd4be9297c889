// IeeeHalf: a half by its bits, as host programs and a few codelets use it.
#pragma once
#include <poplar/HalfFloat.hpp>

namespace poplar {

class IeeeHalf {
  half value_;

public:
  IeeeHalf() = default;
  IeeeHalf(float value) : value_(half(value)) {}
  static IeeeHalf fromBits(std::uint16_t bits) {
    IeeeHalf made;
    __builtin_memcpy(&made.value_, &bits, sizeof bits);
    return made;
  }
  std::uint16_t bit16() const {
    std::uint16_t bits;
    __builtin_memcpy(&bits, &value_, sizeof bits);
    return bits;
  }
  std::uint16_t bits() const { return bit16(); }
  operator float() const { return float(value_); }
};

} // namespace poplar
