// What codelets do to memory, checked: POPCORE_CHECK 1 looks at indices, 2 at every access as well.
//
// For 2 the compiler puts a call before each load and store, as it does for its own detector of races; here they ask the
// shadow of tile memory, which kernels/guard.py describes. Only what runs between watch_memory and unwatch_memory counts.
#pragma once
#include "context.hpp"

#ifdef POPCORE_CHECK
namespace popcore {

POPCORE_ENDS __attribute__((noinline, cold)) inline void *outside(const void *accessor, const void *first, std::size_t count, std::size_t index) {
  Context *context = current;
  if (!context)
    fail(OUTSIDE, "an index outside of its field", "", 0);
  const char *name = context->name_of(context->vertex, accessor, first);
  const std::uint64_t values[] = {OUTSIDE, reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)), reinterpret_cast<std::uintptr_t>(name), count, index};
  find(context, values, 5, 0x11111, 4);
#ifdef POPCORE_COLLECT
  alignas(16) static thread_local unsigned char nothing[64]; // larger than any element and than what a list has of a piece
  for (unsigned char &each : nothing)
    each = 0;
  return nothing;
#endif
}

// Stands before the name of a field of which an element's address is taken: one that is not used may lie outside.
template <class E> struct Unchecked {
  E *first_;
  E &operator[](std::size_t index) const { return first_[index]; }
};

template <class T, class = void> struct IsAccessor : std::false_type {};
template <class T> struct IsAccessor<T, std::void_t<decltype(std::declval<T>().first_), decltype(std::declval<T>().count_)>> : std::true_type {};

template <class T> constexpr decltype(auto) unchecked(T &&x) {
  if constexpr (IsAccessor<std::remove_reference_t<T>>::value)
    return Unchecked<std::remove_pointer_t<decltype(x.first_)>>{x.first_};
  else
    return static_cast<T &&>(x);
}

} // namespace popcore
#endif

#if !defined(POPCORE_CHECK) || POPCORE_CHECK < 2

#define POPCORE_PLAIN
namespace popcore {
constexpr bool shadowed = false;
struct Watching {
  Watching(const std::uint64_t *, bool) {}
};
inline void watch_worker(unsigned) {}
inline void begin_memory(const std::uint64_t *, const std::uint8_t *, std::size_t, bool, bool) {}
} // namespace popcore

#else
#ifdef __clang__ // which else calls the hooks of atomic operations in them, and in these hooks themselves
#define POPCORE_PLAIN __attribute__((disable_sanitizer_instrumentation))
#else
#define POPCORE_PLAIN __attribute__((no_sanitize("thread"))) // of popcore's own functions that access memory of tiles
#endif
#define POPCORE_ALWAYS POPCORE_PLAIN __attribute__((always_inline)) inline

namespace popcore {

constexpr bool shadowed = true;

struct Watch { // what accesses are checked against
  std::uintptr_t arena, bytes; // 0 bytes: nothing
  std::intptr_t shadow;
  int users, shared; // calls of drivers that are under way, and those of vertices that six workers share
};
// One for the whole library, since a thread's own would take longer to find than all else that an access costs.
inline Watch watch{};
inline pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
inline pthread_cond_t watch_free = PTHREAD_COND_INITIALIZER;
inline thread_local unsigned watched_worker = 0; // number of the worker plus one; 0 where no other has the same fields

inline void watch_worker(unsigned mine) { watched_worker = mine; }

// Around a call of a driver. Where engines run at once, those of another memory wait until its calls are done. Plain: its own stores to
// ``watch`` would be checked against what is half written; and between calls nothing is watched, for the memory may be somebody else's by then.
class Watching {
  bool shared_;

public:
  POPCORE_PLAIN Watching(const std::uint64_t *aux, bool shared) : shared_(shared) {
    pthread_mutex_lock(&watch_lock);
    while (watch.users && watch.arena != aux[POPCORE_AUX_ARENA])
      pthread_cond_wait(&watch_free, &watch_lock);
    watch.arena = aux[POPCORE_AUX_ARENA];
    watch.bytes = aux[POPCORE_AUX_SHADOW] ? aux[POPCORE_AUX_ARENA_BYTES] : 0;
    watch.shadow = std::intptr_t(aux[POPCORE_AUX_SHADOW]);
    ++watch.users;
    watch.shared += shared;
    pthread_mutex_unlock(&watch_lock);
  }
  POPCORE_PLAIN ~Watching() {
    pthread_mutex_lock(&watch_lock);
    watched_worker = 0;
    watch.shared -= shared_;
    if (--watch.users == 0) {
      watch.bytes = 0;
      pthread_cond_broadcast(&watch_free);
    }
    pthread_mutex_unlock(&watch_lock);
  }
};

POPCORE_PLAIN inline void clear(std::uint8_t *start, std::size_t bytes) { // not by memset, whose writes are noted
  for (std::size_t i = 0; i < bytes; ++i)
    start[i] = 0;
}

POPCORE_PLAIN inline void begin_memory(const std::uint64_t *aux, const std::uint8_t *start, std::size_t bytes, bool output, bool shared) {
  auto *plane = const_cast<std::uint8_t *>(start) + aux[POPCORE_AUX_SHADOW];
  if (plane == start)
    return; // called by a host that keeps no shadow
  if (output)
    clear(plane, bytes);
  if (shared) {
    clear(plane + aux[POPCORE_AUX_SHADOW], bytes);
    clear(plane + 3 * aux[POPCORE_AUX_SHADOW], bytes);
    const std::size_t before = reinterpret_cast<std::uintptr_t>(start) & 3; // the first word's mark is where the word begins
    clear(plane + 2 * aux[POPCORE_AUX_SHADOW] - before, before + bytes);
  }
}

// Where in the code the accesses of workers are, by the number that the shadow keeps of them.
inline const void *sites[256];

POPCORE_PLAIN inline std::uint8_t number_of(const void *from) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(from) * 0x9e3779b97f4a7c15u >> 40;
  for (unsigned tries = 0; tries < 16; ++tries, ++hash) {
    const unsigned number = hash % 255 + 1;
    const void *known = __atomic_load_n(&sites[number], __ATOMIC_RELAXED);
    if (known == from || (!known && __atomic_compare_exchange_n(&sites[number], &known, from, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)))
      return std::uint8_t(number);
  }
  return 0; // not known: too many
}

enum Finding : std::uint64_t { UNDEFINED = 1, OVERWRITTEN = 2, SHARED_WORD = 3, MISALIGNED = 4 }; // as kernels/abi.py numbers them

POPCORE_ENDS POPCORE_PLAIN __attribute__((noinline, cold)) inline void found(Finding what, std::uintptr_t address, std::size_t bytes, const void *from,
                                                                            unsigned other = 0, unsigned other_site = 0) {
  const std::uint64_t values[] = {what, reinterpret_cast<std::uintptr_t>(from), other, reinterpret_cast<std::uintptr_t>(sites[other_site]), address, bytes};
  find(current, values, 6, 0x111116, 4);
}

constexpr bool another(unsigned who, unsigned mine) { return who && who != mine; }

POPCORE_PLAIN __attribute__((noinline)) inline void read_shared(std::uintptr_t address, std::size_t bytes, const void *from) {
  const unsigned mine = watched_worker;
  if (!mine)
    return;
  auto *tags = reinterpret_cast<std::uint8_t *>(address + 2 * watch.shadow), *numbers = reinterpret_cast<std::uint8_t *>(address + 4 * watch.shadow);
  const std::uint8_t number = number_of(from);
  for (std::size_t i = 0; i < bytes; ++i) {
    const unsigned tag = tags[i], writer = tag & 7, reader = tag >> 3 & 7;
    if (another(writer, mine))
      found(OVERWRITTEN, address + i, 1, from, writer, numbers[i]);
    if (!writer && !reader)
      numbers[i] = number;
    tags[i] = std::uint8_t(tag | (reader ? (reader != mine ? 64 : 0) : mine << 3));
  }
}

POPCORE_PLAIN __attribute__((noinline)) inline void write_shared(std::uintptr_t address, std::size_t bytes, const void *from) {
  const unsigned mine = watched_worker;
  if (!mine)
    return;
  auto *tags = reinterpret_cast<std::uint8_t *>(address + 2 * watch.shadow), *numbers = reinterpret_cast<std::uint8_t *>(address + 4 * watch.shadow);
  const std::uint8_t number = number_of(from);
  for (std::size_t i = 0; i < bytes; ++i) {
    const unsigned tag = tags[i], writer = tag & 7, reader = tag >> 3 & 7;
    if (another(writer, mine) || another(reader, mine) || tag & 64)
      found(OVERWRITTEN, address + i, 1, from, another(writer, mine) ? writer : another(reader, mine) ? reader : 0, numbers[i]);
    tags[i] = std::uint8_t((tag & ~7u) | mine);
    numbers[i] = number;
  }
  for (std::uintptr_t word = address & ~std::uintptr_t(3); word < address + bytes; word += 4) {
    if (word >= address && word + 4 <= address + bytes)
      continue; // a whole word
    auto &tag = *reinterpret_cast<std::uint8_t *>(word + 3 * watch.shadow);
    if (another(tag, mine)) {
      unsigned other_site = 0;
      for (unsigned i = 0; i < 4; ++i)
        if ((*reinterpret_cast<std::uint8_t *>(word + i + 2 * watch.shadow) & 7) == tag)
          other_site = *reinterpret_cast<std::uint8_t *>(word + i + 4 * watch.shadow);
      found(SHARED_WORD, address, 1, from, tag, other_site);
    }
    tag = std::uint8_t(mine);
  }
}

template <std::size_t N> struct Bits;
template <> struct Bits<1> { typedef std::uint8_t Type; };
template <> struct Bits<2> { typedef std::uint16_t Type __attribute__((may_alias, aligned(1))); };
template <> struct Bits<4> { typedef std::uint32_t Type __attribute__((may_alias, aligned(1))); };
template <> struct Bits<8> { typedef std::uint64_t Type __attribute__((may_alias, aligned(1))); };

POPCORE_PLAIN __attribute__((noinline)) inline void read_range(std::uintptr_t address, std::size_t bytes, const void *from) {
  const Watch &w = watch;
  if (address - w.arena >= w.bytes)
    return;
  auto *seen = reinterpret_cast<const std::uint8_t *>(address + w.shadow);
  std::size_t first = 0, last = bytes;
  while (first < bytes && seen[first] == 0xff)
    ++first;
  while (last > first && seen[last - 1] == 0xff)
    --last;
  if (first < last)
    found(UNDEFINED, address + first, last - first, from);
  if (w.shared)
    read_shared(address, bytes, from);
}

POPCORE_PLAIN __attribute__((noinline)) inline void write_range(std::uintptr_t address, std::size_t bytes, const void *from) {
  const Watch &w = watch;
  if (address - w.arena >= w.bytes)
    return;
  auto *seen = reinterpret_cast<std::uint8_t *>(address + w.shadow);
  for (std::size_t i = 0; i < bytes; ++i)
    seen[i] = 0xff;
  if (w.shared)
    write_shared(address, bytes, from);
}

// A is what the address has to be a multiple of: a tile cannot load or store anywhere else. Whatever is not plain is left to a call at the end, so that
// the usual way needs no stack.
template <std::size_t N, std::size_t A> POPCORE_PLAIN __attribute__((noinline)) void read_slowly(std::uintptr_t address, const void *from) {
  if (address % A)
    found(MISALIGNED, address, N, from);
  read_range(address, N, from);
}

template <std::size_t N, std::size_t A> POPCORE_PLAIN __attribute__((noinline)) void write_slowly(std::uintptr_t address, const void *from) {
  if (address % A)
    found(MISALIGNED, address, N, from);
  write_range(address, N, from);
}

template <std::size_t N, std::size_t A> POPCORE_ALWAYS void reads(const void *where, const void *from) {
  const Watch &w = watch;
  const auto address = reinterpret_cast<std::uintptr_t>(where);
  if (address - w.arena >= w.bytes)
    return;
  using Type = typename Bits<N>::Type;
  const bool seen = *reinterpret_cast<const Type *>(address + w.shadow) == Type(~Type(0));
  if (__builtin_expect((address % A) | !seen | unsigned(w.shared), 0))
    read_slowly<N, A>(address, from);
}

template <std::size_t N, std::size_t A> POPCORE_ALWAYS void writes(const void *where, const void *from) {
  const Watch &w = watch;
  const auto address = reinterpret_cast<std::uintptr_t>(where);
  if (address - w.arena >= w.bytes)
    return;
  if (__builtin_expect((address % A) | unsigned(w.shared), 0))
    return write_slowly<N, A>(address, from);
  using Type = typename Bits<N>::Type;
  *reinterpret_cast<Type *>(address + w.shadow) = Type(~Type(0));
}

POPCORE_ALWAYS void reads_range(const void *where, std::size_t bytes, const void *from) { read_range(reinterpret_cast<std::uintptr_t>(where), bytes, from); }
POPCORE_ALWAYS void writes_range(const void *where, std::size_t bytes, const void *from) { write_range(reinterpret_cast<std::uintptr_t>(where), bytes, from); }

} // namespace popcore

// What compilers call. Weak: several files of one library have them. g++ has declarations of its own of the names.
#define POPCORE_HOOK(TYPE, NAME, ...)                                                                                                                          \
  extern "C" POPCORE_PLAIN __attribute__((weak)) TYPE popcore_tsan_##NAME(__VA_ARGS__) __asm__("__tsan_" #NAME);                                              \
  extern "C" TYPE popcore_tsan_##NAME(__VA_ARGS__)
POPCORE_HOOK(void, init) {}
POPCORE_HOOK(void, func_entry, void *) {}
POPCORE_HOOK(void, func_exit) {}
POPCORE_HOOK(void, read_range, void *at, unsigned long bytes) { popcore::reads_range(at, bytes, __builtin_return_address(0)); }
POPCORE_HOOK(void, write_range, void *at, unsigned long bytes) { popcore::writes_range(at, bytes, __builtin_return_address(0)); }
POPCORE_HOOK(void, vptr_read, void *) {}
POPCORE_HOOK(void, vptr_update, void *, void *) {}

#define POPCORE_HOOKS(N, KIND, A)                                                                                                                              \
  POPCORE_HOOK(void, KIND##read##N, void *at) { popcore::reads<N, A>(at, __builtin_return_address(0)); }                                                    \
  POPCORE_HOOK(void, KIND##write##N, void *at) { popcore::writes<N, A>(at, __builtin_return_address(0)); }                                                  \
  POPCORE_HOOK(void, KIND##read_write##N, void *at) {                                                                                                       \
    popcore::reads<N, A>(at, __builtin_return_address(0));                                                                                                    \
    popcore::writes<N, A>(at, __builtin_return_address(0));                                                                                                   \
  }
POPCORE_HOOKS(1, , 1)
POPCORE_HOOKS(2, , 2)
POPCORE_HOOKS(4, , 4)
POPCORE_HOOKS(8, , 8)
POPCORE_HOOKS(2, unaligned_, 1)
POPCORE_HOOKS(4, unaligned_, 1)
POPCORE_HOOKS(8, unaligned_, 1)
POPCORE_HOOK(void, read16, void *at) { popcore::reads_range(at, 16, __builtin_return_address(0)); }
POPCORE_HOOK(void, write16, void *at) { popcore::writes_range(at, 16, __builtin_return_address(0)); }
POPCORE_HOOK(void, unaligned_read16, void *at) { popcore::reads_range(at, 16, __builtin_return_address(0)); }
POPCORE_HOOK(void, unaligned_write16, void *at) { popcore::writes_range(at, 16, __builtin_return_address(0)); }

#ifdef __clang__ // it makes calls of these of copies, those of whole objects too; for g++ see memory.hpp
POPCORE_HOOK(void *, memcpy, void *to, const void *from, std::size_t bytes) {
  popcore::reads_range(from, bytes, __builtin_return_address(0));
  popcore::writes_range(to, bytes, __builtin_return_address(0));
  return __builtin_memcpy(to, from, bytes);
}
POPCORE_HOOK(void *, memmove, void *to, const void *from, std::size_t bytes) {
  popcore::reads_range(from, bytes, __builtin_return_address(0));
  popcore::writes_range(to, bytes, __builtin_return_address(0));
  return __builtin_memmove(to, from, bytes);
}
POPCORE_HOOK(void *, memset, void *to, int value, std::size_t bytes) {
  popcore::writes_range(to, bytes, __builtin_return_address(0));
  return __builtin_memset(to, value, bytes);
}
#endif

// Atomic operations are what they were: workers that use them wait for each other.
#define POPCORE_UPDATE(BITS, T, NAME, OPERATION)                                                                                                              \
  POPCORE_HOOK(T, atomic##BITS##_##NAME, volatile T *at, T value, int) { return OPERATION(at, value, __ATOMIC_SEQ_CST); }
#define POPCORE_ATOMICS(BITS, T)                                                                                                                              \
  POPCORE_HOOK(T, atomic##BITS##_load, const volatile T *at, int) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }                                    \
  POPCORE_HOOK(void, atomic##BITS##_store, volatile T *at, T value, int) {                                                                             \
    popcore::writes<BITS / 8, 1>(const_cast<T *>(at), __builtin_return_address(0));                                                                              \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                                                                            \
  }                                                                                                                                                           \
  POPCORE_UPDATE(BITS, T, exchange, __atomic_exchange_n)                                                                                                      \
  POPCORE_UPDATE(BITS, T, fetch_add, __atomic_fetch_add)                                                                                                      \
  POPCORE_UPDATE(BITS, T, fetch_sub, __atomic_fetch_sub)                                                                                                      \
  POPCORE_UPDATE(BITS, T, fetch_and, __atomic_fetch_and)                                                                                                      \
  POPCORE_UPDATE(BITS, T, fetch_or, __atomic_fetch_or)                                                                                                        \
  POPCORE_UPDATE(BITS, T, fetch_xor, __atomic_fetch_xor)                                                                                                      \
  POPCORE_UPDATE(BITS, T, fetch_nand, __atomic_fetch_nand)                                                                                                    \
  POPCORE_HOOK(bool, atomic##BITS##_compare_exchange_strong, volatile T *at, T *expected, T value, int, int) {                                         \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                                       \
  }                                                                                                                                                           \
  POPCORE_HOOK(bool, atomic##BITS##_compare_exchange_weak, volatile T *at, T *expected, T value, int, int) {                                           \
    return __atomic_compare_exchange_n(at, expected, value, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                                        \
  }                                                                                                                                                           \
  POPCORE_HOOK(T, atomic##BITS##_compare_exchange_val, volatile T *at, T expected, T value, int, int) {                                                \
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                                             \
    return expected;                                                                                                                                          \
  }
POPCORE_ATOMICS(8, unsigned char)
POPCORE_ATOMICS(16, unsigned short)
POPCORE_ATOMICS(32, unsigned int)
POPCORE_ATOMICS(64, unsigned long)
POPCORE_HOOK(void, atomic_thread_fence, int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
POPCORE_HOOK(void, atomic_signal_fence, int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
#endif
