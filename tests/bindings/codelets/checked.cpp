// What checks of memory accesses find, and what they must leave alone.
#include <algorithm>
#include <cstring>
#include <poplar/Vertex.hpp>

using namespace poplar;

struct Reads : Vertex {
  InOut<Vector<float>> x;
  Input<int> at;
  void compute() {
    x[0] = x[*at]; // line 12
  }
};

struct Rows : Vertex {
  Output<VectorList<float>> rows;
  Input<int> at;
  void compute() {
    for (unsigned r = 0; r < rows.size(); ++r)
      for (int c = 0; c < *at; ++c)
        rows[r][c] = float(r);
  }
};

struct Pointer : Vertex {
  Input<Vector<float, VectorLayout::ONE_PTR>> x;
  Output<Vector<float>> out;
  void compute() {
    const float *before = &x[-1], *end = &x[out.size()];
    std::copy(before + 1, end, &out[0]);
  }
};

struct Sorted : Vertex {
  Input<Vector<float>> x;
  Output<Vector<float>> out;
  void compute() {
    float kept[6];
    std::memset(&out[0], 0, out.size() * sizeof(float));
    std::memcpy(kept, &x[0], out.size() * sizeof(float));
    std::memmove(&(out[0]), kept, out.size() * sizeof(float));
    std::sort(out.begin(), out.end());
  }
};

struct Wide : Vertex {
  Input<Vector<float, VectorLayout::SPAN, 8>> x;
  Output<Vector<float, VectorLayout::SPAN, 8>> out;
  void compute() {
    typedef float Two __attribute__((vector_size(8)));
    for (unsigned i = 0; i + 1 < out.size(); i += 2)
      *reinterpret_cast<Two *>(&out[i]) = *reinterpret_cast<const Two *>(&x[i]) + 1.0f;
  }
};

struct First : Vertex {
  Output<Vector<float>> out;
  Input<int> at;
  void compute() {
    for (int i = 0; i < *at; ++i)
      out[i] = 1;
    float total = 0;
    for (unsigned i = 0; i < out.size(); ++i)
      total += out[i];
    out[0] = total;
  }
};

template <int Step> struct Halves : MultiVertex {
  Output<Vector<half>> out;
  void compute(unsigned worker) {
    for (unsigned i = Step * worker; i < out.size(); i += 6 * Step)
      for (unsigned k = i; k < i + Step; ++k)
        out[k] = half(float(k));
  }
};
template struct Halves<1>;
template struct Halves<2>;

template <bool Apart> struct Neighbours : MultiVertex {
  InOut<Vector<int>> x;
  void compute(unsigned worker) { x[worker] += x[Apart ? worker : (worker + 1) % 6]; }
};
template struct Neighbours<false>;
template struct Neighbours<true>;

struct Waits : MultiVertex {
  InOut<Vector<unsigned>> flags;
  Output<Vector<int>> out;
  void compute(unsigned worker) {
    volatile unsigned *seen = &flags[0];
    out[worker] = int(worker);
    seen[worker] = 1;
    while (!seen[(worker + 1) % 6])
      ;
  }
};
