// half: IEEE binary16, rounded after every operation. It is the compiler's own type, made known to the standard library;
// with POPCORE_HALF_SATURATES a class with a tile's overflow rule.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(POPCORE_HALF_SATURATES) || defined(POPCORE_HALF_STOCHASTIC)
#include <popcore/saturating_half.hpp>
typedef popcore::SaturatingHalf half;
#define POPCORE_ROUNDED half::rounded
#define POPCORE_OPERAND half::operand
#else
typedef _Float16 half;
#define POPCORE_ROUNDED half
#define POPCORE_OPERAND float
#endif

namespace poplar {
using ::half;
}

#if !defined(__STDCPP_FLOAT16_T__) && !defined(POPCORE_HALF_IN_STD)
#define POPCORE_HALF_IN_STD

namespace std {

template <> struct numeric_limits<half> {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_iec559 = true;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
#ifdef POPCORE_HALF_SATURATES
  static constexpr bool has_infinity = false;
#else
  static constexpr bool has_infinity = true;
#endif
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr float_denorm_style has_denorm = denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr float_round_style round_style = round_to_nearest;
  static constexpr int radix = 2;
  static constexpr int digits = 11;
  static constexpr int digits10 = 3;
  static constexpr int max_digits10 = 5;
  static constexpr int max_exponent = 16;
  static constexpr int max_exponent10 = 4;
  static constexpr int min_exponent = -13;
  static constexpr int min_exponent10 = -4;
  static constexpr half max() noexcept { return half(65504.0f); }
  static constexpr half lowest() noexcept { return half(-65504.0f); }
  static constexpr half min() noexcept { return half(0x1p-14f); }
  static constexpr half denorm_min() noexcept { return half(0x1p-24f); }
  static constexpr half epsilon() noexcept { return half(0x1p-10f); }
  static constexpr half round_error() noexcept { return half(0.5f); }
  static constexpr half infinity() noexcept { return half(_Float16(__builtin_inff())); }
  static constexpr half quiet_NaN() noexcept { return half(__builtin_nanf("")); }
  static constexpr half signaling_NaN() noexcept { return half(__builtin_nansf("")); }
};

template <> struct is_floating_point<half> : true_type {};
template <> struct is_floating_point<const half> : true_type {};
template <> struct is_arithmetic<half> : true_type {};
template <> struct is_arithmetic<const half> : true_type {};
template <> struct is_scalar<half> : true_type {};
template <> struct is_scalar<const half> : true_type {};
template <> inline constexpr bool is_floating_point_v<half> = true;
template <> inline constexpr bool is_floating_point_v<const half> = true;
template <> inline constexpr bool is_arithmetic_v<half> = true;
template <> inline constexpr bool is_arithmetic_v<const half> = true;
template <> inline constexpr bool is_scalar_v<half> = true;

// Computed as float and rounded once, which is right for the basic ones and how a tile does the others.
#define POPCORE_ONE(NAME) \
  inline half NAME(half x) { return POPCORE_ROUNDED(__builtin_##NAME##f(POPCORE_OPERAND(x))); }
#define POPCORE_TWO(NAME) \
  inline half NAME(half x, half y) { return POPCORE_ROUNDED(__builtin_##NAME##f(POPCORE_OPERAND(x), POPCORE_OPERAND(y))); }
POPCORE_ONE(sqrt)
POPCORE_ONE(cbrt)
POPCORE_ONE(exp)
POPCORE_ONE(exp2)
POPCORE_ONE(expm1)
POPCORE_ONE(log)
POPCORE_ONE(log2)
POPCORE_ONE(log10)
POPCORE_ONE(log1p)
POPCORE_ONE(sin)
POPCORE_ONE(cos)
POPCORE_ONE(tan)
POPCORE_ONE(asin)
POPCORE_ONE(acos)
POPCORE_ONE(atan)
POPCORE_ONE(sinh)
POPCORE_ONE(cosh)
POPCORE_ONE(tanh)
POPCORE_ONE(erf)
POPCORE_ONE(erfc)
POPCORE_ONE(floor)
POPCORE_ONE(ceil)
POPCORE_ONE(round)
POPCORE_ONE(trunc)
POPCORE_ONE(rint)
POPCORE_ONE(nearbyint)
POPCORE_TWO(pow)
POPCORE_TWO(fmod)
POPCORE_TWO(remainder)
POPCORE_TWO(atan2)
POPCORE_TWO(hypot)
#undef POPCORE_ONE
#undef POPCORE_TWO

// No arithmetic: infinities stay.
inline half fabs(half x) { return half(_Float16(__builtin_fabsf(float(x)))); }
inline half abs(half x) { return fabs(x); }
inline half fmin(half x, half y) { return half(_Float16(__builtin_fminf(float(x), float(y)))); }
inline half fmax(half x, half y) { return half(_Float16(__builtin_fmaxf(float(x), float(y)))); }
inline half copysign(half x, half y) { return half(_Float16(__builtin_copysignf(float(x), float(y)))); }
inline half fma(half x, half y, half z) { return POPCORE_ROUNDED(__builtin_fmaf(POPCORE_OPERAND(x), POPCORE_OPERAND(y), POPCORE_OPERAND(z))); }
inline bool isnan(half x) { return __builtin_isnan(float(x)); }
inline bool isinf(half x) { return __builtin_isinf(float(x)); }
inline bool isfinite(half x) { return __builtin_isfinite(float(x)); }
inline bool signbit(half x) { return __builtin_signbit(float(x)); }

} // namespace std
#endif

#ifndef POPCORE_HALF_LITERAL
#define POPCORE_HALF_LITERAL
constexpr half operator""_h(long double x) { return half(float(x)); }
#endif
