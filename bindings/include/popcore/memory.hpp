// memcpy, memmove and memset that note what they read and write, where every access is checked; the plain ones elsewhere.
//
// Included before anything else: the standard library's algorithms call them by the names of builtins.
#pragma once
#include <cstddef>
#include <cstring>

#if defined(POPCORE_CHECK) && POPCORE_CHECK >= 2 && !defined(__clang__)
extern "C" {
void popcore_tsan_read_range(void *at, unsigned long bytes) __asm__("__tsan_read_range");
void popcore_tsan_write_range(void *at, unsigned long bytes) __asm__("__tsan_write_range");

// A power of two up to 16 becomes a load and a store, of which the compiler tells by itself.
#define POPCORE_COPIES(NAME)                                                                                                                                  \
  __attribute__((always_inline)) inline void *popcore_##NAME(void *to, const void *from, std::size_t bytes) {                                                 \
    if (!(__builtin_constant_p(bytes) && bytes <= 16 && !(bytes & (bytes - 1)))) {                                                                            \
      popcore_tsan_read_range(const_cast<void *>(from), bytes);                                                                                                     \
      popcore_tsan_write_range(to, bytes);                                                                                                                          \
    }                                                                                                                                                         \
    return __builtin_##NAME(to, from, bytes);                                                                                                                 \
  }
POPCORE_COPIES(memcpy)
POPCORE_COPIES(memmove)

__attribute__((always_inline)) inline void *popcore_memset(void *to, int value, std::size_t bytes) {
  popcore_tsan_write_range(to, bytes);
  return __builtin_memset(to, value, bytes);
}
}

namespace std {
using ::popcore_memcpy;
using ::popcore_memmove;
using ::popcore_memset;
} // namespace std

#define memcpy popcore_memcpy
#define memmove popcore_memmove
#define memset popcore_memset
#define __builtin_memcpy popcore_memcpy
#define __builtin_memmove popcore_memmove
#define __builtin_memset popcore_memset
#endif
