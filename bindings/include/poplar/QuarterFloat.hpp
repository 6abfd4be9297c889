// quarter: 8-bit floats of two formats, converted through float by their metadata (format and scale).
#pragma once
#include <poplar/HalfFloat.hpp>

struct quarter {
  std::uint8_t bits;
};

typedef std::uint8_t MetadataType;

enum class QuarterFormat { F143 = 0, F152 = 1 };

struct quarter_metadata {
  int fmt = 0; // 0: four bits of exponent, three of fraction; 1: five and two
  int scale = 0;
};

namespace poplar {

using ::MetadataType;
using ::quarter;
using ::quarter_metadata;

// Bit 7 is the format, bits 0 to 5 the scale in two's complement.
inline quarter_metadata unpackMetadata(MetadataType packed) {
  quarter_metadata made;
  made.fmt = packed >> 7;
  made.scale = int(packed & 31) - int(packed & 32);
  return made;
}

inline quarter_metadata unpackMetadata(const MetadataType *packed) { return packed ? unpackMetadata(*packed) : quarter_metadata(); }

inline MetadataType packMetadata(quarter_metadata m) { return MetadataType(m.fmt << 7 | (m.scale & 63)); }

inline float toFloat(quarter value, quarter_metadata m) {
  if (value.bits == 0x80) // the one NaN; there is no negative zero and no infinity
    return __builtin_nanf("");
  const int fraction_bits = m.fmt ? 2 : 3, bias = m.fmt ? 16 : 8;
  const int exponent = (value.bits & 0x7f) >> fraction_bits, fraction = value.bits & ((1 << fraction_bits) - 1);
  const int significand = exponent ? fraction | 1 << fraction_bits : fraction;
  const float size = __builtin_ldexpf(float(significand), (exponent ? exponent : 1) - bias - fraction_bits + m.scale);
  return value.bits & 0x80 ? -size : size;
}

inline half toHalf(quarter value, quarter_metadata m) { return half(toFloat(value, m)); }

// To the nearest, ties to even, stopping at the largest.
inline quarter toQuarter(float value, quarter_metadata m, bool = false) {
  if (!(value == value))
    return quarter{0x80};
  const float size = __builtin_fabsf(value);
  int low = 0, high = 127;
  while (low < high) { // the largest code not above
    const int middle = (low + high + 1) / 2;
    if (toFloat(quarter{std::uint8_t(middle)}, m) <= size)
      low = middle;
    else
      high = middle - 1;
  }
  if (low < 127) {
    const float below = size - toFloat(quarter{std::uint8_t(low)}, m), above = toFloat(quarter{std::uint8_t(low + 1)}, m) - size;
    low += above < below || (above == below && (low & 1));
  }
  return quarter{std::uint8_t(value < 0 && low ? low | 0x80 : low)};
}

} // namespace poplar

using poplar::toFloat;
using poplar::toHalf;
using poplar::toQuarter;
using poplar::unpackMetadata;
