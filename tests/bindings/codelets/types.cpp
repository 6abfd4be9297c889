// Element types, and arithmetic in each of them.
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>

using namespace poplar;

template <typename T> class Increment : public Vertex {
public:
  InOut<Vector<T>> x;
  const T by;

  void compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      x[i] = static_cast<T>(x[i] + by);
  }
};
template class Increment<float>;
template class Increment<half>;
template class Increment<int>;
template class Increment<unsigned int>;
template class Increment<short>;
template class Increment<unsigned short>;
template class Increment<char>;
template class Increment<signed char>;
template class Increment<unsigned char>;
template class Increment<long long>;
template class Increment<unsigned long long>;

template <typename From, typename To> class CastTo : public Vertex {
public:
  Input<Vector<From>> in;
  Output<Vector<To>> out;

  void compute() {
    for (unsigned i = 0; i < in.size(); ++i)
      out[i] = static_cast<To>(in[i]);
  }
};
template class CastTo<float, half>;
template class CastTo<half, float>;
template class CastTo<int, half>;
template class CastTo<half, int>;
template class CastTo<bool, float>;

class Masked : public Vertex {
public:
  Input<Vector<bool>> mask;
  InOut<Vector<float>> x;

  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      if (!mask[i])
        x[i] = 0;
    return true;
  }
};

enum class Op : unsigned char { ADD, SUBTRACT, MULTIPLY, DIVIDE };

template <Op op, typename T> class Binary : public Vertex {
public:
  Input<Vector<T, VectorLayout::ONE_PTR>> a, b;
  Output<Vector<T>> out;

  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i)
      switch (op) {
      case Op::ADD: out[i] = a[i] + b[i]; break;
      case Op::SUBTRACT: out[i] = a[i] - b[i]; break;
      case Op::MULTIPLY: out[i] = a[i] * b[i]; break;
      case Op::DIVIDE: out[i] = a[i] / b[i]; break;
      }
    return true;
  }
};
template class Binary<Op::ADD, half>;
template class Binary<Op::SUBTRACT, half>;
template class Binary<Op::MULTIPLY, half>;
template class Binary<Op::DIVIDE, half>;
template class Binary<Op::DIVIDE, float>;

// a * b + c in half rounds twice.
class HalfMultiplyAdd : public Vertex {
public:
  Input<Vector<half>> a, b, c;
  Output<Vector<half>> out;
  Output<half> largest;

  bool compute() {
    half best = std::numeric_limits<half>::lowest();
    for (unsigned i = 0; i < out.size(); ++i) {
      out[i] = a[i] * b[i] + c[i];
      best = std::max(best, half(out[i]));
    }
    *largest = best;
    return true;
  }
};

class HalfFunctions : public Vertex {
public:
  InOut<Vector<half>> x;

  bool compute() {
    for (auto &v : x)
      v = std::sqrt(std::fabs(v)) + half(0.5f);
    return true;
  }
};

// A long has 32 bits on a tile: this wraps.
class LongHash : public Vertex {
public:
  Input<Vector<unsigned long>> x;
  Output<Vector<long>> out;
  const unsigned long factor;
  size_t seen;

  bool compute() {
    unsigned long h = 5381;
    for (unsigned i = 0; i < x.size(); ++i) {
      h = h * factor + x[i];
      out[i] = long(h >> 1);
    }
    seen += x.size();
    return sizeof(long) == 4;
  }
};

class Histogram : public Vertex {
public:
  Input<Vector<uint8_t>> x;
  Output<Vector<uint32_t>> bins;

  bool compute() {
    std::memset(&bins[0], 0, bins.size() * sizeof(bins[0]));
    for (auto v : x)
      ++bins[v % bins.size()];
    return true;
  }
};

// double is slow on a tile and is there.
class Mean : public Vertex {
public:
  Input<Vector<float>> x;
  Output<float> mean;

  bool compute() {
    double s = 0.0;
    for (float v : x)
      s += v;
    *mean = float(s / x.size());
    return true;
  }
};
