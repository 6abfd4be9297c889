// Halves that overflow, alone and in short vectors; for both rules of overflow.
#include <ipu_vector_math>
#include <ipudef.h>
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>

using namespace poplar;

class Overflows : public Vertex {
public:
  Input<Vector<half>> a, b;
  Input<Vector<float>> wide;
  Output<Vector<half>> sum, difference, product, quotient, grown, converted, squared;
  Output<Vector<float>> mixed;
  half scale;

  bool compute() {
    for (unsigned i = 0; i < a.size(); ++i) {
      sum[i] = a[i] + b[i];
      difference[i] = a[i] - b[i];
      product[i] = a[i] * b[i];
      quotient[i] = a[i] / b[i];
      grown[i] = a[i];
      grown[i] *= scale;
      grown[i] += 1;
      converted[i] = wide[i];
      squared[i] = std::pow(half(a[i]), half(2.0f));
      mixed[i] = a[i] * 2.0f + (b[i] < a[i] ? 1 : 0);
    }
    return true;
  }
};

class OverflowsInPairs : public Vertex {
public:
  Input<Vector<half, VectorLayout::SPAN, 8>> a, b;
  Output<Vector<half, VectorLayout::SPAN, 8>> out;
  Output<half> sum;

  bool compute() {
    half4 total = {0, 0, 0, 0};
    for (unsigned i = 0; i < a.size() / 4; ++i) {
      const half4 x = reinterpret_cast<const half4 *>(&a[0])[i], y = reinterpret_cast<const half4 *>(&b[0])[i];
      const half4 made = ipu::fmax(x * y, -x) + half(1.0f);
      reinterpret_cast<half4 *>(&out[0])[i] = made;
      total += made;
    }
    *sum = ipu::sum(total);
    return true;
  }
};

class Converts : public Vertex {
public:
  Input<Vector<float>> wide;
  Output<Vector<half>> out;

  bool compute() {
    for (unsigned i = 0; i < wide.size(); ++i)
      out[i] = wide[i];
    return true;
  }
};

class Halves : public Vertex {
public:
  Input<Vector<float>> x;
  Output<Vector<float>> out;

  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      out[i] = x[i] * 0.5f;
    return true;
  }
};

class Stops : public Vertex {
public:
  Input<Vector<float>> wide;
  Output<Vector<half>> out;
  Output<Vector<float>> inverse;

  bool compute() {
    for (unsigned i = 0; i < wide.size(); ++i) {
      out[i] = wide[i];
      inverse[i] = 1.0f / wide[i];
    }
    return true;
  }
};
