// Variables that a codelet keeps outside of its vertex: each tile has its own, swapped in while the tile runs.
//
// Nothing happens here unless the host found such variables in the library and named them.
#pragma once
#include <cstdlib>

#include "context.hpp"

namespace popcore {

struct Machine { // the tiles of one memory
  std::uint8_t *mem;
  std::uint8_t **tiles;
  std::int32_t count;
  Machine *next;
};

inline const popcore_variable *variables = nullptr;
inline std::int64_t variable_count = 0, variable_bytes = 0;
inline std::uint8_t *variables_at_first = nullptr;
inline Machine *machines = nullptr;
inline pthread_mutex_t swapping = PTHREAD_MUTEX_INITIALIZER;

inline void copy_variables(std::uint8_t *block, bool into_place) {
  for (std::int64_t i = 0; i < variable_count; block += variables[i++].bytes)
    std::memcpy(into_place ? variables[i].address : block, into_place ? block : variables[i].address, std::size_t(variables[i].bytes));
}

inline std::uint8_t *variables_of(std::uint8_t *mem, std::int32_t tile, bool own = true) {
  Machine *machine = machines;
  while (machine && machine->mem != mem)
    machine = machine->next;
  if (!own && (!machine || tile >= machine->count))
    return nullptr;
  if (!machine)
    machines = machine = new Machine{mem, nullptr, 0, machines};
  if (tile >= machine->count) {
    const std::int32_t count = tile + 64;
    machine->tiles = static_cast<std::uint8_t **>(std::realloc(machine->tiles, sizeof(std::uint8_t *) * std::size_t(count)));
    for (std::int32_t i = machine->count; i < count; ++i)
      machine->tiles[i] = nullptr;
    machine->count = count;
  }
  if (!machine->tiles[tile] && own) {
    machine->tiles[tile] = static_cast<std::uint8_t *>(std::malloc(std::size_t(variable_bytes)));
    std::memcpy(machine->tiles[tile], variables_at_first, std::size_t(variable_bytes));
  }
  return machine->tiles[tile];
}

inline thread_local std::uint8_t *swapped_in = nullptr;

inline void swap_out() {
  if (swapped_in) {
    copy_variables(swapped_in, false);
    swapped_in = nullptr;
    pthread_mutex_unlock(&swapping);
  }
}

class StaticsOfTile {
public:
  StaticsOfTile(std::uint8_t *mem, std::int32_t tile) {
    if (variable_count) {
      pthread_mutex_lock(&swapping);
      swapped_in = variables_of(mem, tile);
      copy_variables(swapped_in, true);
    }
  }
  ~StaticsOfTile() {
    if (variable_count)
      swap_out();
  }
};

} // namespace popcore

// While the variables have the values they start with.
extern "C" __attribute__((weak, visibility("default"))) void popcore_keep_variables(const popcore_variable *what, std::int64_t count) {
  using namespace popcore;
  variables = what;
  variable_bytes = 0;
  for (std::int64_t i = 0; i < count; ++i)
    variable_bytes += what[i].bytes;
  variables_at_first = static_cast<std::uint8_t *>(std::malloc(std::size_t(variable_bytes)));
  variable_count = count;
  copy_variables(variables_at_first, false);
}

extern "C" __attribute__((weak, visibility("default"))) void popcore_forget(std::uint8_t *mem) {
  using namespace popcore;
  pthread_mutex_lock(&swapping);
  for (Machine *machine = machines; machine; machine = machine->next)
    if (machine->mem == mem)
      for (std::int32_t i = 0; i < machine->count; ++i) {
        std::free(machine->tiles[i]);
        machine->tiles[i] = nullptr;
      }
  pthread_mutex_unlock(&swapping);
}

extern "C" __attribute__((weak, visibility("default"))) std::uint8_t *popcore_variables_of(std::uint8_t *mem, std::int32_t tile, std::int32_t own) {
  using namespace popcore;
  pthread_mutex_lock(&swapping);
  std::uint8_t *found = variable_count ? variables_of(mem, tile, own != 0) : nullptr;
  pthread_mutex_unlock(&swapping);
  return found;
}
