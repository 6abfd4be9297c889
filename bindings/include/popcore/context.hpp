// What a running codelet can ask and tell: its tile and worker, a fault, a line to print.
#pragma once
#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <signal.h>

#include "codelet_abi.h"
#include "counters.hpp"

namespace popcore {

// Kinds of faults, value 0 of a fault; the others are its text, file (addresses) and line. Of OUTSIDE: the address of the code, the
// field's name, the size and the index. What the shadow finds has a type of its own, see shadow.hpp.
enum FaultKind : std::uint64_t { ASSERTION = 0, CRASH = 1, TIME_LIMIT = 2, THROWN = 3, ABORTED = 4, OUTSIDE = 5 };

constexpr std::uint64_t NATIVE_SITE = ~std::uint64_t(1); // site of faults and prints that say by themselves what they are
constexpr int ACCUMULATORS = 32;

struct Context {
  std::uint64_t *aux;
  std::uint64_t *prints; // the block that has the print buffer
  std::int64_t position;
  std::int32_t tile;
  std::uint32_t worker;
  std::uint64_t random;
  const void *memory; // of the replica
  std::uint64_t key; // of stochastic rounding, see rounding.hpp
  std::uint64_t roundings;
  Tally *tally; // this thread's
  const std::uint32_t *weights; // of the counters of the type that runs, see counters.hpp
  std::uint64_t taken; // by the vertex, or by the slowest of its workers
  std::int64_t seen_position; // of the time limit
  std::int64_t seen_at;
  std::uint32_t seen_worker;
  volatile bool running;
  float accumulators[ACCUMULATORS];
  float scale;
  std::uint32_t registers[128];
#ifdef POPCORE_CHECK
  const void *vertex; // that runs, and which of its fields an accessor is
  const char *(*name_of)(const void *vertex, const void *accessor, const void *first);
#endif
  sigjmp_buf out;
};

inline thread_local Context *current = nullptr;
inline pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;
inline std::int64_t limit_nanoseconds = 0; // of one call of compute, in time of its thread; 0: none

inline void tell(Context *context, const std::uint64_t *values, unsigned count, std::uint64_t tags) {
  std::uint64_t *aux = context->aux;
  aux[POPCORE_AUX_SITE] = NATIVE_SITE;
  aux[POPCORE_AUX_COUNT] = count;
  aux[POPCORE_AUX_TAGS] = tags;
  aux[POPCORE_AUX_WORKER] = context->worker;
  for (unsigned i = 0; i < count; ++i)
    aux[POPCORE_AUX_VALUES + i] = values[i];
}

// End this vertex with the values of a fault and their types.
[[noreturn]] inline void fail(Context *context, const std::uint64_t *values, unsigned count, std::uint64_t tags) {
  tell(context, values, count, tags);
  context->running = false;
  siglongjmp(context->out, 1);
}

// A check found something: have it noted and go on, if the codelet is compiled for that and the caller takes notes; else end this vertex.
// ``keys``: how many of the values say what it is, see kernels/findings.py.
#ifdef POPCORE_COLLECT
#define POPCORE_ENDS
inline void find(Context *context, const std::uint64_t *values, unsigned count, std::uint64_t tags, unsigned keys) {
  std::uint64_t *aux = context->aux;
  if (!aux[POPCORE_AUX_NOTE])
    fail(context, values, count, tags);
  pthread_mutex_lock(&telling);
  tell(context, values, count, tags);
  aux[POPCORE_AUX_POSITION] = std::uint64_t(context->position);
  reinterpret_cast<std::int64_t (*)(std::int64_t, std::int64_t)>(aux[POPCORE_AUX_NOTE])(reinterpret_cast<std::intptr_t>(aux), keys);
  pthread_mutex_unlock(&telling);
}
#else
#define POPCORE_ENDS [[noreturn]]
[[noreturn]] inline void find(Context *context, const std::uint64_t *values, unsigned count, std::uint64_t tags, unsigned) { fail(context, values, count, tags); }
#endif

// ``text`` and ``file`` stay where they are until the host has read them.
[[noreturn]] inline void fail(Context *context, FaultKind kind, const char *text, const char *file, int line) {
  const std::uint64_t values[] = {kind, reinterpret_cast<std::uintptr_t>(text), reinterpret_cast<std::uintptr_t>(file), static_cast<std::uint64_t>(line)};
  fail(context, values, 4, 0x5555);
}

// End this vertex at a floating-point result that stops the program; ``site`` says which, see kernels/behaviour.py.
[[noreturn]] inline void stop_at(Context *context, std::int64_t site) {
  std::uint64_t *aux = context->aux;
  aux[POPCORE_AUX_SITE] = std::uint64_t(site);
  aux[POPCORE_AUX_COUNT] = aux[POPCORE_AUX_TAGS] = 0;
  aux[POPCORE_AUX_WORKER] = context->worker;
  context->running = false;
  siglongjmp(context->out, 1);
}

[[noreturn]] inline void fail(FaultKind kind, const char *text, const char *file, int line) {
  if (current)
    fail(current, kind, text, file, line);
  std::fprintf(stderr, "%s:%d: %s\n", file, line, text);
  __builtin_trap();
}

// A record of the print buffer: its words, position, tile, worker, site, tags, then the bytes of text and the text.
inline int print(const char *format, std::va_list arguments) {
  char text[1024];
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  Context *context = current;
  if (!context || length < 0)
    return length < 0 ? length : std::fputs(text, stdout);
  const std::size_t bytes = std::size_t(length) < sizeof text ? std::size_t(length) : sizeof text - 1;
  const std::uint64_t words = 7 + (bytes + 7) / 8;
  std::uint64_t *aux = context->prints;
  pthread_mutex_lock(&telling);
  if (!aux[POPCORE_AUX_PRINT_BUFFER] || aux[POPCORE_AUX_PRINT_USED] + words > aux[POPCORE_AUX_PRINT_CAPACITY]) {
    ++aux[POPCORE_AUX_PRINT_LOST];
  } else {
    auto *record = reinterpret_cast<std::uint64_t *>(aux[POPCORE_AUX_PRINT_BUFFER]) + aux[POPCORE_AUX_PRINT_USED];
    const std::uint64_t head[] = {words, std::uint64_t(context->position), std::uint64_t(context->tile), context->worker, NATIVE_SITE, 0, bytes};
    std::memcpy(record, head, sizeof head);
    if (bytes)
      record[words - 1] = 0;
    std::memcpy(record + 7, text, bytes);
    aux[POPCORE_AUX_PRINT_USED] += words;
  }
  pthread_mutex_unlock(&telling);
  return length;
}

inline std::int64_t thread_time() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

// Random bits that depend on the phase, tile, row, worker and call, not on which thread runs the tile.
inline std::uint64_t random_bits() {
  Context fallback{};
  Context *c = current ? current : &fallback;
  std::uint64_t x = ++c->random * 0x9e3779b97f4a7c15u + std::uint64_t(c->position) * 0xbf58476d1ce4e5b9u + c->worker * 0x94d049bb133111ebu;
  x += (c->aux ? c->aux[POPCORE_AUX_PHASE] : 0) * 0xd6e8feb86659fd93u + std::uint64_t(c->tile);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

} // namespace popcore

extern "C" __attribute__((weak)) int popcore_printf(const char *format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int length = popcore::print(format, arguments);
  va_end(arguments);
  return length;
}
