// Vertex classes and the types of their fields, for codelets that run on a host processor.
//
// Every layout is stored as an address and a count. What a layout lacks on a tile it lacks here too: a ONE_PTR
// vector has no size(). An Input's elements are const; POPCORE_MUTABLE_INPUT is for sources older than that rule.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>

#include <poplar/HalfFloat.hpp>
#include <poplar/QuarterFloat.hpp>
#include <poplar/TileConstants.hpp>

#ifdef POPCORE_CHECK
namespace popcore {
// End the vertex: element ``index`` of a field of ``count`` was named. Where the run goes on it gives zeros in its place, which may be written.
#ifndef POPCORE_COLLECT
[[noreturn]]
#endif
void *outside(const void *accessor, const void *first, std::size_t count, std::size_t index);
} // namespace popcore
#endif

// The vertex itself is no memory of a tile: where the compiler puts a call before each load, none is needed for this one.
#if defined(POPCORE_CHECK) && POPCORE_CHECK >= 2 && defined(__x86_64__)
#define POPCORE_MEMBER(NAME) popcore::quietly(NAME)
namespace popcore {
template <class T> __attribute__((always_inline)) inline T quietly(const T &member) {
  T value;
  __asm__("mov %1, %0" : "=r"(value) : "m"(member));
  return value;
}
} // namespace popcore
#else
#define POPCORE_MEMBER(NAME) NAME
#endif

namespace poplar {

enum class VectorLayout { NOT_SPECIFIED, SPAN, SHORT_SPAN, ONE_PTR, COMPACT_PTR, SCALED_PTR32, SCALED_PTR64, SCALED_PTR128 };

enum class VectorListLayout { NOT_SPECIFIED, ONE_PTR, SCALED_PTR32, SCALED_PTR64, SCALED_PTR128, DELTAN, DELTANELEMENTS, COMPACT_DELTAN };

namespace storage {

#ifdef POPCORE_MUTABLE_INPUT
template <class T> using Read = T;
#else
template <class T> using Read = const T;
#endif

constexpr bool counted(VectorLayout layout) {
  return layout == VectorLayout::SPAN || layout == VectorLayout::SHORT_SPAN || layout == VectorLayout::NOT_SPECIFIED;
}

template <class E> struct Address {
  using value_type = std::remove_const_t<E>;
  E *first_;
  std::uint32_t count_;

  // That the index is small is not assumed, though g++ would then vectorise x[r * width + c] of unsigned numbers: the
  // address of an element outside, as &x[(r - 1) * width], may be made as long as it is not used.
  E &operator[](std::size_t index) const {
#ifdef POPCORE_CHECK
    const std::size_t count = POPCORE_MEMBER(count_);
    if (__builtin_expect(index >= count, 0))
      return *static_cast<E *>(popcore::outside(this, first_, count, index));
#endif
    return POPCORE_MEMBER(first_)[index];
  }
  E *data() const { return first_; }
  E *begin() const { return first_; }
  const std::uint8_t *getMetadata() const {
    static constexpr std::uint8_t plain = 0;
    return &plain;
  }
};

template <class E> struct Counted : Address<E> {
  using iterator = E *;
  using const_iterator = E *;
  using size_type = std::uint32_t;

  std::uint32_t size() const { return POPCORE_MEMBER(this->count_); }
  bool empty() const { return this->count_ == 0; }
  E *end() const { return this->first_ + this->count_; }
  E &front() const { return (*this)[0]; }
  E &back() const { return (*this)[this->count_ - 1]; }
  std::reverse_iterator<E *> rbegin() const { return std::reverse_iterator<E *>(end()); }
  std::reverse_iterator<E *> rend() const { return std::reverse_iterator<E *>(this->first_); }
};

template <class E, VectorLayout L> using Elements = std::conditional_t<counted(L), Counted<E>, Address<E>>;

// The edge of a scalar: the scalar itself in expressions, its address as a pointer would be.
template <class E> struct Scalar {
  using value_type = std::remove_const_t<E>;
  E *first_;

  E &operator*() const { return *first_; }
  E *operator->() const { return first_; }
  E *operator&() const { return first_; }
  operator E &() const { return *first_; }
};

// The edge of a vector or list can be used as what it leads to, or as a pointer to that.
template <class Whole> struct Edge : Whole {
  const Edge &operator*() const { return *this; }
  const Edge *operator->() const { return this; }
};

} // namespace storage

template <class T, VectorLayout L = VectorLayout::SPAN, unsigned Align = alignof(T), bool Interleaved = false>
class Vector : public storage::Elements<T, L> {};

// Rows of their own lengths.
template <class T, VectorListLayout L = VectorListLayout::DELTANELEMENTS, unsigned Align = alignof(T), bool Interleaved = false>
class VectorList : public storage::Counted<storage::Counted<T>> {};

template <class T> class Input : public storage::Scalar<storage::Read<T>> {};

template <class T> class Output : public storage::Scalar<T> {
public:
  Output &operator=(const T &value) {
    *this->first_ = value;
    return *this;
  }
};

template <class T> class InOut : public storage::Scalar<T> {
public:
  InOut &operator=(const T &value) {
    *this->first_ = value;
    return *this;
  }
};

template <class T, VectorLayout L, unsigned A, bool I> class Input<Vector<T, L, A, I>> : public storage::Edge<storage::Elements<storage::Read<T>, L>> {
public:
  // A read-only vector can be passed as one; no element can be written through it.
  operator const Vector<T, L, A, I> &() const { return *reinterpret_cast<const Vector<T, L, A, I> *>(this); }
};

template <class T, VectorLayout L, unsigned A, bool I> class Output<Vector<T, L, A, I>> : public storage::Edge<Vector<T, L, A, I>> {};

template <class T, VectorLayout L, unsigned A, bool I> class InOut<Vector<T, L, A, I>> : public storage::Edge<Vector<T, L, A, I>> {};

template <class T, VectorListLayout L, unsigned A, bool I>
class Input<VectorList<T, L, A, I>> : public storage::Edge<storage::Counted<storage::Counted<storage::Read<T>>>> {};

template <class T, VectorListLayout L, unsigned A, bool I> class Output<VectorList<T, L, A, I>> : public storage::Edge<VectorList<T, L, A, I>> {};

template <class T, VectorListLayout L, unsigned A, bool I> class InOut<VectorList<T, L, A, I>> : public storage::Edge<VectorList<T, L, A, I>> {};

class Vertex {};

class MultiVertex : public Vertex {
public:
  static constexpr unsigned numWorkers() { return 6; }
};

class SupervisorVertex : public Vertex {};

template <bool Supervisor> using SupervisorVertexIf = std::conditional_t<Supervisor, SupervisorVertex, Vertex>;

} // namespace poplar

#ifndef WORKER_ALIGN
#define WORKER_ALIGN
#endif
#ifndef IS_EXTERNAL_CODELET
#define IS_EXTERNAL_CODELET(WHEN) static constexpr bool isExternalCodelet = (WHEN)
#endif
