// Stochastic rounding to half, and floating-point results that stop the program: as popcore's own codelets have them.
#pragma once
#include <popcore/context.hpp>

namespace popcore {

#ifdef POPCORE_HALF_STOCHASTIC
inline std::uint64_t mixed(std::uint64_t key, std::uint64_t part) {
  std::uint64_t x = key + (part + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// Before compute: the key of this call. Its parts are seed, compute sets so far, replica, tile, vertex, worker.
inline void begin_rounding(Context *context, unsigned worker) {
  const std::uint64_t *aux = context->prints;
  const auto *streams = reinterpret_cast<const std::int64_t *>(aux[POPCORE_AUX_STREAMS]);
  const auto *firsts = reinterpret_cast<const std::int64_t *>(streams[3]), *vertices = reinterpret_cast<const std::int64_t *>(streams[4]);
  const std::int64_t replica = (reinterpret_cast<std::intptr_t>(context->memory) - streams[1]) / streams[2];
  const std::int64_t vertex = vertices[firsts[aux[POPCORE_AUX_BATCH]] + context->position];
  std::uint64_t key = std::uint64_t(streams[0]);
  for (std::uint64_t part : {aux[POPCORE_AUX_PHASE], std::uint64_t(replica), std::uint64_t(context->tile), std::uint64_t(vertex), std::uint64_t(worker)})
    key = mixed(key, part);
  context->key = key;
  context->roundings = 0;
}

inline std::uint32_t rounding_bits() {
  Context *context = current;
  if (!context)
    return 0;
  std::uint32_t x = std::uint32_t(context->roundings++) * 0x9e3779b9u + std::uint32_t(context->key);
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x ^= std::uint32_t(context->key >> 32);
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}

// Random bits are added below the last bit of the half, then what is below it is cut off; below 2^-25 it is zero.
inline _Float16 stochastic(float value) {
#ifdef POPCORE_HALF_NANOO
  constexpr std::uint32_t too_large = 0x7e00;
#elif defined(POPCORE_HALF_IEEE)
  constexpr std::uint32_t too_large = 0x7c00;
#else
  constexpr std::uint32_t too_large = 0x7bff;
#endif
  const std::uint32_t random = rounding_bits();
  std::uint32_t pattern;
  __builtin_memcpy(&pattern, &value, sizeof pattern);
  const std::uint32_t magnitude = pattern & 0x7fffffff, exponent = magnitude >> 23;
  std::uint32_t found = 0;
  if (magnitude > 0x7f800000) {
    found = 0x7e00;
  } else if (exponent >= 102) {
    const std::uint32_t below = exponent < 113 ? 113 - exponent : 0, cut = 13 + below;
    found = (((pattern & 0x7fffff) | 0x800000) + (random & ((1u << cut) - 1))) >> cut;
    found += (exponent + below - 113) << 10;
    if (found >= 0x7c00)
      found = too_large;
  }
  const auto half_bits = static_cast<std::uint16_t>(found | (pattern >> 16 & 0x8000));
  _Float16 made;
  __builtin_memcpy(&made, &half_bits, sizeof made);
  return made;
}
#else
inline void begin_rounding(Context *, unsigned) {}
#endif

#ifdef POPCORE_TRAPS
constexpr unsigned INVALID_FLAG = 1, ZERO_FLAG = 4, OVERFLOW_FLAG = 8, FLAGS = 63; // of MXCSR

inline void raise_overflow() { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | OVERFLOW_FLAG); }
inline void clear_flags() { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~FLAGS); }

// End this vertex if it has raised what stops the program.
inline void check_flags(Context *context) {
  const unsigned flags = __builtin_ia32_stmxcsr();
  const int site = (POPCORE_TRAPS & 1) && (flags & INVALID_FLAG) ? -3 : (POPCORE_TRAPS & 2) && (flags & ZERO_FLAG) ? -4 : (POPCORE_TRAPS & 4) && (flags & OVERFLOW_FLAG) ? -5 : 0;
  if (site)
    stop_at(context, site);
}
#else
inline void clear_flags() {}
inline void check_flags(Context *) {}
#endif

} // namespace popcore
