// The codelets of codelets.py in C++, and some that only C++ has. The line that goes wrong for a wrong k says so.
#include <cassert>
#include <cstring>
#include <poplar/Vertex.hpp>

using namespace poplar;
template <class T> using In = Input<Vector<T>>;
template <class T> using Out = Output<Vector<T>>;
template <class T> using Both = InOut<Vector<T>>;

struct ReadAt : Vertex {
  In<float> x;
  Out<float> y;
  Input<int> k;
  void compute() {
    y[0] = x[*k]; // here
  }
};

struct WriteAt : Vertex {
  Both<float> y;
  Input<int> k;
  void compute() {
    y[*k] = 1; // here
  }
};

struct AddAt : Vertex {
  Both<float> y;
  Input<int> k;
  void compute() {
    y[*k] += 1; // here
  }
};

struct RowAt : Vertex {
  Input<VectorList<float>> rows;
  Output<float> y;
  Input<int> k;
  void compute() {
    y = rows[*k][0]; // here
  }
};

struct InRowAt : Vertex {
  Input<VectorList<float>> rows;
  Output<float> y;
  Input<int> k;
  void compute() {
    y = rows[1][*k]; // here
  }
};

struct WriteThenRead : Vertex {
  Out<float> y;
  Input<int> k;
  void compute() {
    for (int i = 0; i < *k; ++i)
      y[i] = 1;
    y[0] = y[2]; // here
  }
};

struct ScalarBeforeWrite : Vertex {
  Output<float> y;
  Output<float> z;
  Input<int> k;
  void compute() {
    if (*k)
      y = 1;
    z = *y; // here
  }
};

struct Asserts : Vertex {
  Input<int> k;
  Output<int> y;
  void compute() {
    assert(*k < 3); // here
    y = *k;
  }
};

struct HalvesApart : MultiVertex {
  Out<half> y;
  Input<int> k;
  void compute(unsigned worker) {
    y[worker * *k] = 1; // here
  }
};

struct BytesApart : MultiVertex {
  Out<unsigned char> y;
  Input<int> k;
  void compute(unsigned worker) {
    y[worker * *k] = 1; // here
  }
};

struct FloatsApart : MultiVertex {
  Out<float> y;
  Input<int> k;
  void compute(unsigned worker) {
    y[worker * *k] = 1; // here
  }
};

struct ReadsNeighbour : MultiVertex {
  Both<float> y;
  Input<int> k;
  void compute(unsigned worker) {
    y[worker] = y[(worker + *k) % 6]; // here
  }
};

struct OneForAll : MultiVertex {
  Both<float> y;
  Input<int> k;
  void compute(unsigned worker) {
    if (worker == 5)
      y[*k] = 1;
    else if (worker < 4)
      y[worker + 1] = y[0]; // here
  }
};

struct Points : Vertex {
  In<float> x;
  Output<float> y;
  Input<int> k;
  void compute() {
    const float *p = x.begin() + *k;
    y = *p; // here
  }
};

struct Copies : Vertex {
  In<float> x;
  Out<float> y;
  Input<int> k;
  void compute() {
    std::memcpy(&y[0], &x[0], *k * sizeof(float)); // here
  }
};

struct Wide : Vertex {
  Input<Vector<float, VectorLayout::SPAN, 8>> x;
  Output<float> y;
  Input<int> k;
  void compute() {
    typedef float Two __attribute__((vector_size(8)));
    const Two both = *reinterpret_cast<const Two *>(&x[*k]); // here
    y = both[0] + both[1];
  }
};

struct LastOf : Vertex {
  Input<VectorList<float>> rows;
  Output<float> y;
  Input<int> k;
  void compute() {
    y = rows[*k].back(); // here
  }
};

struct Deep : Vertex { // here
  Output<float> y;
  Input<int> k;
  __attribute__((noinline)) float down(int n) {
    volatile float kept[64];
    kept[n & 63] = float(n);
    return n ? down(n - 1) + kept[n & 63] : 0;
  }
  void compute() { y = down(*k); }
};
