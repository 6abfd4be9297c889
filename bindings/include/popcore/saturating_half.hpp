// half as a tile has it: a result too large is the largest number of its sign, and an infinity that comes in gives NaN.
// Otherwise it is _Float16: rounded after every operation, float beside a float, half beside an integer.
//
// POPCORE_HALF_SATURATES   as above; without it and the next ones half is _Float16 itself
// POPCORE_HALF_NANOO       besides: a result too large is NaN
// POPCORE_HALF_STOCHASTIC  besides, or with POPCORE_HALF_IEEE (infinities as in _Float16): rounded by random bits
// POPCORE_TRAPS            bits of what stops the program: 1 an invalid operation, 2 a division by zero, 4 an overflow
#pragma once
#include <cstddef>
#include <popcore/context.hpp>
#include <popcore/rounding.hpp>
#include <type_traits>

namespace popcore {

class SaturatingHalf;
template <class T> using IsNumber = std::conjunction<std::negation<std::is_same<T, SaturatingHalf>>, std::disjunction<std::is_arithmetic<T>, std::is_enum<T>>>;

class SaturatingHalf {
  _Float16 value_;

#ifdef POPCORE_HALF_IEEE
  static constexpr bool ieee = true;
#else
  static constexpr bool ieee = false;
#endif
  static constexpr float largest = 65504.0f, overflows = 65520.0f;
  static constexpr _Float16 nearest(float x) {
#ifdef POPCORE_HALF_NANOO
    return x >= overflows || x <= -overflows ? _Float16(__builtin_nanf("")) : _Float16(x);
#else
    return x > largest ? _Float16(largest) : x < -largest ? _Float16(-largest) : _Float16(x);
#endif
  }

public:
  static constexpr float operand(SaturatingHalf x) { // of arithmetic
    const float wide = float(x.value_);
    return ieee || wide - wide == 0 ? wide : __builtin_nanf("");
  }
  SaturatingHalf() = default;
  constexpr SaturatingHalf(_Float16 value) : value_(value) {}
  template <class T, class = std::enable_if_t<IsNumber<T>::value>> constexpr SaturatingHalf(T x) : value_(converted(float(x))) {}
  constexpr operator float() const { return float(value_); }

  static constexpr _Float16 converted(float x) { return ieee || x - x == 0 ? rounded(x).value_ : _Float16(__builtin_nanf("")); }
  static constexpr SaturatingHalf rounded(float x) {
#ifdef POPCORE_TRAPS
    if ((x >= overflows || x <= -overflows) && x - x == 0)
      raise_overflow();
#endif
#ifdef POPCORE_HALF_STOCHASTIC
    if (!__builtin_is_constant_evaluated())
      return SaturatingHalf(stochastic(x));
#endif
    return SaturatingHalf(nearest(x));
  }

  friend constexpr SaturatingHalf operator+(SaturatingHalf a, SaturatingHalf b) { return rounded(operand(a) + operand(b)); }
  friend constexpr SaturatingHalf operator-(SaturatingHalf a, SaturatingHalf b) { return rounded(operand(a) - operand(b)); }
  friend constexpr SaturatingHalf operator*(SaturatingHalf a, SaturatingHalf b) { return rounded(operand(a) * operand(b)); }
  // A tile divides as float and converts.
  friend constexpr SaturatingHalf operator/(SaturatingHalf a, SaturatingHalf b) { return SaturatingHalf(operand(a) / operand(b)); }
  constexpr SaturatingHalf operator-() const { return SaturatingHalf(-value_); }
  constexpr SaturatingHalf operator+() const { return *this; }
  template <class T> constexpr SaturatingHalf &operator+=(T x) { return *this = *this + x; }
  template <class T> constexpr SaturatingHalf &operator-=(T x) { return *this = *this - x; }
  template <class T> constexpr SaturatingHalf &operator*=(T x) { return *this = *this * x; }
  template <class T> constexpr SaturatingHalf &operator/=(T x) { return *this = *this / x; }
  constexpr SaturatingHalf &operator++() { return *this = *this + SaturatingHalf(1.0f); }
  constexpr SaturatingHalf &operator--() { return *this = *this - SaturatingHalf(1.0f); }
  constexpr SaturatingHalf operator++(int) {
    const SaturatingHalf before = *this;
    ++*this;
    return before;
  }
  constexpr SaturatingHalf operator--(int) {
    const SaturatingHalf before = *this;
    --*this;
    return before;
  }
};

// Beside another number: half beside an integer, else the other's type.
template <class T> using IsFloating = std::disjunction<std::is_same<T, float>, std::is_same<T, double>, std::is_same<T, long double>>;
template <class T> using Beside = std::enable_if_t<IsNumber<T>::value, std::conditional_t<IsFloating<T>::value, T, SaturatingHalf>>;

#define POPCORE_BESIDE(SIGN) \
  template <class T> constexpr Beside<T> operator SIGN(SaturatingHalf a, T b) { return Beside<T>(a) SIGN Beside<T>(b); } \
  template <class T> constexpr Beside<T> operator SIGN(T a, SaturatingHalf b) { return Beside<T>(a) SIGN Beside<T>(b); }
POPCORE_BESIDE(+)
POPCORE_BESIDE(-)
POPCORE_BESIDE(*)
POPCORE_BESIDE(/)
#undef POPCORE_BESIDE

// Short vectors of it; the compiler's own can have no class as elements.
template <int N> struct __attribute__((may_alias)) HalfVector {
  struct Mask { // what a comparison gives: -1 or 0
    short lanes[N];
    short operator[](std::size_t i) const { return lanes[i]; }
  };
  alignas(2 * N) SaturatingHalf lanes[N];

  constexpr SaturatingHalf &operator[](std::size_t i) { return lanes[i]; }
  constexpr const SaturatingHalf &operator[](std::size_t i) const { return lanes[i]; }
  constexpr HalfVector operator-() const {
    HalfVector made = *this;
    for (SaturatingHalf &x : made.lanes)
      x = -x;
    return made;
  }

#define POPCORE_LANES(SIGN) \
  constexpr HalfVector &operator SIGN##=(const HalfVector &b) { \
    for (int i = 0; i < N; ++i) \
      lanes[i] = lanes[i] SIGN b.lanes[i]; \
    return *this; \
  } \
  constexpr HalfVector &operator SIGN##=(SaturatingHalf b) { \
    for (SaturatingHalf &x : lanes) \
      x = x SIGN b; \
    return *this; \
  } \
  friend constexpr HalfVector operator SIGN(HalfVector a, const HalfVector &b) { return a SIGN##= b; } \
  friend constexpr HalfVector operator SIGN(HalfVector a, SaturatingHalf b) { return a SIGN##= b; } \
  friend constexpr HalfVector operator SIGN(SaturatingHalf a, const HalfVector &b) { \
    HalfVector made = b; \
    for (SaturatingHalf &x : made.lanes) \
      x = a SIGN x; \
    return made; \
  }
  POPCORE_LANES(+)
  POPCORE_LANES(-)
  POPCORE_LANES(*)
  POPCORE_LANES(/)
#undef POPCORE_LANES

#define POPCORE_COMPARED(SIGN) \
  friend Mask operator SIGN(const HalfVector &a, const HalfVector &b) { \
    Mask made = {}; \
    for (int i = 0; i < N; ++i) \
      made.lanes[i] = a.lanes[i] SIGN b.lanes[i] ? -1 : 0; \
    return made; \
  }
  POPCORE_COMPARED(<)
  POPCORE_COMPARED(<=)
  POPCORE_COMPARED(>)
  POPCORE_COMPARED(>=)
  POPCORE_COMPARED(==)
  POPCORE_COMPARED(!=)
#undef POPCORE_COMPARED
};

} // namespace popcore
