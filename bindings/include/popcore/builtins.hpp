// The tile's builtins as functions. They name no short vector type, since sources may define such names themselves.
#pragma once
#include <cmath>
#include <popcore/context.hpp>

namespace popcore {
typedef float Float2 __attribute__((vector_size(8)));
typedef _Float16 Half2 __attribute__((vector_size(4)));

inline Context &here() {
  static thread_local Context outside{};
  return current ? *current : outside;
}

inline float uniform() { return float(random_bits() >> 40) * 0x1p-24f; }

inline float normal() { // two uniforms by Box and Muller
  const float u = float((random_bits() >> 40) + 1) * 0x1p-24f, v = uniform();
  return __builtin_sqrtf(-2.0f * __builtin_logf(u)) * __builtin_cosf(6.28318530718f * v);
}

template <class To, class From> inline To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

template <class V, class Operation> inline V bitwise(V a, V b, Operation operation) {
  unsigned char x[sizeof(V)], y[sizeof(V)];
  __builtin_memcpy(x, &a, sizeof(V));
  __builtin_memcpy(y, &b, sizeof(V));
  for (unsigned i = 0; i < sizeof(V); ++i)
    x[i] = static_cast<unsigned char>(operation(x[i], y[i]));
  __builtin_memcpy(&a, x, sizeof(V));
  return a;
}
} // namespace popcore

#define __builtin_assume(CONDITION) (static_cast<void>(0))

inline unsigned __builtin_ipu_get_tile_id() { return unsigned(popcore::here().tile); }
inline unsigned __builtin_ipu_get_worker_id() { return popcore::here().worker; }
inline bool __builtin_ipu_is_worker_mode() { return true; }
inline unsigned __builtin_ipu_get_scount_l() { return unsigned(__builtin_ia32_rdtsc()); }
inline unsigned __builtin_ipu_get_scount_u() { return unsigned(__builtin_ia32_rdtsc() >> 32); }

// Control registers of a worker: register 0 tells its number, the others keep what is put.
inline unsigned __builtin_ipu_get(unsigned index) { return index ? popcore::here().registers[index & 127] : popcore::here().worker; }
inline void __builtin_ipu_put(unsigned value, unsigned index) { popcore::here().registers[index & 127] = value; }
inline unsigned __builtin_ipu_uget(unsigned index) { return __builtin_ipu_get(index); }
inline void __builtin_ipu_uput(unsigned value, unsigned index) { __builtin_ipu_put(value, index); }
inline float __builtin_ipu_ugetf(unsigned index) { return popcore::bits<float>(__builtin_ipu_get(index)); }
inline void __builtin_ipu_uputf(float value, unsigned index) { __builtin_ipu_put(popcore::bits<unsigned>(value), index); }
inline void __builtin_ipu_put_tas(float value) { popcore::here().scale = value; }

inline unsigned __builtin_ipu_urand32() { return unsigned(popcore::random_bits() >> 32); }
inline unsigned long long __builtin_ipu_urand64() { return popcore::random_bits(); }
inline float __builtin_ipu_urand_f32() { return popcore::uniform() - 0.5f; }
inline _Float16 __builtin_ipu_urand_f16() { return _Float16(popcore::uniform() - 0.5f); }
inline popcore::Float2 __builtin_ipu_f32v2grand() { return popcore::Float2{popcore::normal(), popcore::normal()}; }
inline popcore::Half2 __builtin_ipu_f16v2grand() { return popcore::Half2{_Float16(popcore::normal()), _Float16(popcore::normal())}; }

template <class V> inline V __builtin_ipu_and(V a, V b) { return popcore::bitwise(a, b, [](int x, int y) { return x & y; }); }
template <class V> inline V __builtin_ipu_andc(V a, V b) { return popcore::bitwise(a, b, [](int x, int y) { return x & ~y; }); }
template <class V> inline V __builtin_ipu_or(V a, V b) { return popcore::bitwise(a, b, [](int x, int y) { return x | y; }); }
template <class V> inline V __builtin_ipu_not(V a) { return popcore::bitwise(a, a, [](int x, int) { return ~x; }); }
template <class V> inline V __builtin_ipu_and_f32(V a, V b) { return __builtin_ipu_and(a, b); }
template <class V> inline V __builtin_ipu_andc_f32(V a, V b) { return __builtin_ipu_andc(a, b); }
template <class V> inline V __builtin_ipu_or_f32(V a, V b) { return __builtin_ipu_or(a, b); }
template <class V> inline V __builtin_ipu_not_f32(V a) { return __builtin_ipu_not(a); }
template <class V> inline V __builtin_ipu_cmplt(V a, V b) { return popcore::bits<V>(a < b); }
template <class V> inline V __builtin_ipu_cmple(V a, V b) { return popcore::bits<V>(a <= b); }
template <class V> inline V __builtin_ipu_cmpgt(V a, V b) { return popcore::bits<V>(a > b); }
template <class V> inline V __builtin_ipu_cmpge(V a, V b) { return popcore::bits<V>(a >= b); }
template <class V> inline V __builtin_ipu_cmpeq(V a, V b) { return popcore::bits<V>(a == b); }
template <class V> inline V __builtin_ipu_cmpne(V a, V b) { return popcore::bits<V>(a != b); }

inline unsigned __builtin_ipu_clz(unsigned x) { return x ? unsigned(__builtin_clz(x)) : 32; }
inline unsigned __builtin_ipu_popc(unsigned x) { return unsigned(__builtin_popcount(x)); }
inline unsigned __builtin_ipu_bitrev8(unsigned x) {
  unsigned made = 0;
  for (unsigned i = 0; i < 32; ++i)
    made |= (x >> i & 1) << ((i & ~7u) | (7 - (i & 7)));
  return made;
}
inline unsigned __builtin_ipu_swap8(unsigned x) { return (x & 0xff00ff) << 8 | (x >> 8 & 0xff00ff); }
inline unsigned __builtin_ipu_roll8l(unsigned a, unsigned b) { return a >> 8 | b << 24; }
inline unsigned __builtin_ipu_roll8r(unsigned a, unsigned b) { return a << 8 | b >> 24; }
template <class T> inline T __builtin_ipu_min(T a, T b) { return b < a ? b : a; }
template <class T> inline T __builtin_ipu_max(T a, T b) { return a < b ? b : a; }
inline float __builtin_ipu_exp(float x) { return __builtin_expf(x); }
inline float __builtin_ipu_exp2(float x) { return __builtin_exp2f(x); }
inline float __builtin_ipu_ln(float x) { return __builtin_logf(x); }
inline float __builtin_ipu_log2(float x) { return __builtin_log2f(x); }
inline float __builtin_ipu_tanh(float x) { return __builtin_tanhf(x); }
inline float __builtin_ipu_sigm(float x) { return 1.0f / (1.0f + __builtin_expf(-x)); }
inline float __builtin_ipu_sqrt(float x) { return __builtin_sqrtf(x); }
inline float __builtin_ipu_oorx(float x) { return 1.0f / __builtin_sqrtf(x); }
inline bool __builtin_ipu_isnan(float x) { return __builtin_isnan(x); }
inline bool __builtin_ipu_isinf(float x) { return __builtin_isinf(x); }
inline bool __builtin_ipu_isfinite(float x) { return __builtin_isfinite(x); }
inline float __builtin_ipu_f16tof32(_Float16 x) { return float(x); }
inline _Float16 __builtin_ipu_f32tof16(float x) { return _Float16(x); }

// Accumulators of the matrix unit, as far as single multiply-accumulate instructions use them.
template <class V> inline V __builtin_ipu_f32v2axpy(V x, V y) {
  popcore::Context &c = popcore::here();
  const V before = {c.accumulators[0], c.accumulators[2]};
  c.accumulators[0] = c.scale * x[0] + y[0];
  c.accumulators[2] = c.scale * x[1] + y[1];
  return before;
}
template <class V> inline V __builtin_ipu_f32v2gina(V in, int) {
  float *a = popcore::here().accumulators;
  const V out = {a[0], a[2]};
  for (int i = 0; i < 12; i += 4) {
    a[i] = a[i + 4];
    a[i + 2] = a[i + 6];
  }
  a[12] = in[0];
  a[14] = in[1];
  return out;
}
template <class V> inline void __builtin_ipu_f32v2aop(V x, V y, int) {
  float *a = popcore::here().accumulators;
  a[0] += x[0] * y[0];
  a[2] += x[1] * y[0];
  a[4] += x[0] * y[1];
  a[6] += x[1] * y[1];
}
