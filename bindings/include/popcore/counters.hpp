// What a codelet takes on a tile, added up as it runs: each part of its source that runs as a whole has a counter of its own.
//
// The host says what each counter adds. Which instructions a part has is read in what the compiler writes of it. Each function adds
// up by itself, in a register, and hands over when it returns; it looks its counters up as it begins, so that loops stay plain.
#pragma once
#include <cstdint>

namespace popcore {

constexpr unsigned MOST_COUNTERS = 4096;
inline const std::uint32_t no_weights[MOST_COUNTERS] = {};

struct Tally { // of a thread
  std::uint64_t spent = 0;
  const std::uint32_t *weights = no_weights;
};
inline thread_local Tally tally;

class Counting {
  Tally &tally_;
  const std::uint32_t *const weights_;
  std::uint32_t spent_ = 0;

public:
  __attribute__((always_inline)) Counting() : tally_(tally), weights_(tally_.weights) {}
  __attribute__((always_inline)) ~Counting() { tally_.spent += spent_; }
  Counting(const Counting &) = delete;
  __attribute__((always_inline)) std::uint32_t of(unsigned counter) const { return weights_[counter]; }
  __attribute__((always_inline)) void add(std::uint32_t weight) { spent_ += weight; }
};

} // namespace popcore
