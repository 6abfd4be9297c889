// quarter: 8-bit floats of two formats, which codelets convert to and from others by metadata: a format and a scale.
// A code's value is its format's times two to the scale.
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

// To the nearest, ties to even. What is too large is the largest of its sign, or not a number if ``nanoo`` as the tile's
// control bit says; an infinity is not a number in any case.
inline quarter toQuarter(float value, quarter_metadata m, bool nanoo = false) {
  if (!__builtin_isfinite(value))
    return quarter{0x80};
  const int fraction_bits = m.fmt ? 2 : 3, bias = m.fmt ? 16 : 8;
  const double size = __builtin_ldexp(__builtin_fabs(double(value)), -m.scale); // exact, as is all but the rounding
  if (size == 0)
    return quarter{0};
  const int own = __builtin_ilogb(size), exponent = own < 1 - bias ? 1 - bias : own;
  const int significand = int(__builtin_rint(__builtin_ldexp(size, fraction_bits - exponent)));
  int code = own > bias ? 128 : ((exponent + bias - 1) << fraction_bits) + significand; // rounding up carries into the exponent
  if (code > 127) {
    if (nanoo)
      return quarter{0x80};
    code = 127;
  }
  return quarter{std::uint8_t(value < 0 && code ? code | 0x80 : code)};
}

} // namespace poplar

using poplar::toFloat;
using poplar::toHalf;
using poplar::toQuarter;
using poplar::unpackMetadata;
