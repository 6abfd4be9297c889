// Codelets in C++ that drawn programs use.
#include <poplar/Vertex.hpp>

using namespace poplar;

// out = x + k * out, rounded to half once
struct CppBlend : Vertex {
  Input<Vector<float>> x;
  Input<float> k;
  InOut<Vector<half>> out;
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = half(x[i] + *k * float(out[i]));
    return true;
  }
};

// Six workers, each every sixth element.
struct CppShift : MultiVertex {
  Input<Vector<int>> x;
  Output<Vector<int>> out;
  bool compute(unsigned worker) {
    for (unsigned i = worker; i < out.size(); i += numWorkers())
      out[i] = int(unsigned(x[i]) * 3u) ^ int(i);
    return true;
  }
};

// Sums of vectors of different lengths, and how often this vertex ran.
struct CppRows : Vertex {
  Vector<Input<Vector<int>>> rows;
  Output<Vector<int>> sums;
  int calls;
  bool compute() {
    ++calls;
    for (unsigned r = 0; r < rows.size(); ++r) {
      unsigned total = unsigned(calls);
      for (unsigned i = 0; i < rows[r].size(); ++i)
        total += unsigned(rows[r][i]);
      sums[r] = int(total);
    }
    return true;
  }
};

// Bytes that wrap, and whether they were odd.
template <class T> struct CppBytes : Vertex {
  InOut<Vector<T>> x;
  Output<Vector<bool>> odd;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i) {
      odd[i] = x[i] & 1;
      x[i] = T(x[i] + 100);
    }
    return true;
  }
};
template struct CppBytes<unsigned char>;
template struct CppBytes<signed char>;
