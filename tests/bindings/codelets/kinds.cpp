// Kinds of vertices, and the C++ around them that codelets are written in.
#include <cmath>
#include <poplar/StackSizeDefs.hpp>
#include <poplar/TileConstants.hpp>
#include <poplar/Vertex.hpp>
#include <tuple>

#ifndef __POPC__
#error "codelets are compiled with __POPC__"
#endif

using namespace poplar;

DEF_STACK_USAGE(256, __runCodelet_Workers)

class Workers : public MultiVertex {
public:
  Input<Vector<float>> x;
  Output<Vector<float>> y;
  Output<Vector<unsigned>> who;

  bool compute(unsigned workerId) {
    for (unsigned i = workerId; i < x.size(); i += numWorkers()) {
      y[i] = x[i] * x[i];
      who[i] = workerId;
    }
    return true;
  }
};

// Worker 0 adds up what the others left, which works because it runs last.
class TwoSteps : public MultiVertex {
public:
  Input<Vector<int>> x;
  InOut<Vector<int>> partials;
  Output<int> total;

  bool compute(unsigned workerId) {
    int s = 0;
    for (unsigned i = workerId; i < x.size(); i += CTXT_WORKERS)
      s += x[i];
    partials[workerId] = s;
    if (workerId == 0) {
      *total = 0;
      for (unsigned w = 0; w < numWorkers(); ++w)
        *total += partials[w];
    }
    return true;
  }
};

class Supervised : public SupervisorVertex {
public:
  InOut<Vector<int>> x;

  __attribute__((target("supervisor"))) bool compute() {
    for (auto &v : x)
      v = -v;
    return true;
  }
};

constexpr bool HAS_ASSEMBLY = false;

class [[poplar::constraint("elem(*x) != elem(*y)", "upper(*x)")]] MaybeSupervised : public SupervisorVertexIf<HAS_ASSEMBLY> {
public:
  MaybeSupervised();
  Input<Vector<float>> x;
  Output<Vector<float>> y;
  IS_EXTERNAL_CODELET(HAS_ASSEMBLY);

  void compute() {
    std::transform(x.begin(), x.end(), y.begin(), [](float v) { return v > 0 ? v : 0.1f * v; });
  }
};

namespace ops {
namespace detail {
template <typename T> static inline T clampTo(T v, T low, T high) { return std::min(std::max(v, low), high); }
} // namespace detail

template <typename T, bool Saturate> class Limit : public Vertex {
  T limited(T v) { return Saturate ? detail::clampTo(v, low, high) : v; }

public:
  InOut<Vector<T>> x;
  const T low, high;

  auto compute() -> bool {
#pragma unroll 4
    for (unsigned i = 0; i != x.size(); ++i)
      x[i] = limited(x[i]);
    return true;
  }
};
template class Limit<float, true>;
template class Limit<float, false>;
template class Limit<int, true>;
} // namespace ops

template <typename T> struct Source : public Vertex {
  Input<Vector<T>> from;
  T offset;
};

template <typename T> class Derived : public Source<T> {
public:
  Output<Vector<T>> to;

  bool compute() {
    for (unsigned i = 0; i < to.size(); ++i)
      to[i] = this->from[i] + this->offset;
    return true;
  }
};
template class Derived<int>;

// The general case is squared, the special one cubed.
template <typename T> class Power : public Vertex {
public:
  InOut<Vector<T>> x;
  void compute() {
    for (auto &v : x)
      v = v * v;
  }
};
template class Power<float>;
template <> class Power<int> : public Vertex {
public:
  InOut<Vector<int>> x;
  void compute() {
    for (auto &v : x)
      v = v * v * v;
  }
};

#define COMPARE(NAME, OPERATOR)                                                                                        \
  class NAME : public Vertex {                                                                                         \
  public:                                                                                                              \
    Input<Vector<float>> a, b;                                                                                         \
    Output<Vector<bool>> out;                                                                                          \
    bool compute() {                                                                                                   \
      for (unsigned i = 0; i < out.size(); ++i)                                                                        \
        out[i] = a[i] OPERATOR b[i];                                                                                   \
      return true;                                                                                                     \
    }                                                                                                                  \
  };
COMPARE(Less, <)
COMPARE(GreaterEqual, >=)

// Defined outside of its class.
class Euclid : public Vertex {
public:
  Input<Vector<int>> a, b;
  Output<Vector<int>> divisor;
  bool compute();
};

bool Euclid::compute() {
  __builtin_assume(a.size() > 0);
  for (unsigned i = 0; i < a.size(); ++i) {
    int m = a[i], n = b[i];
  again:
    if (n != 0) {
      std::tie(m, n) = std::make_tuple(n, m % n);
      goto again;
    }
    divisor[i] = m;
  }
  return true;
}

// Never instantiated unless asked for: this one cannot be.
template <typename T> class Impossible : public Vertex {
public:
  InOut<Vector<T>> x;
  void compute() { x[0].no_such_member(); }
};
template class Impossible<float>;
