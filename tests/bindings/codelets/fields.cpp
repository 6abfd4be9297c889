// One codelet for each form of field.
#include <poplar/Vertex.hpp>

using namespace poplar;

class VectorAdd : public Vertex {
public:
  Input<Vector<float>> a;
  Input<Vector<float>> b;
  Output<Vector<float>> sum;

  bool compute() {
    for (unsigned i = 0; i < sum.size(); ++i)
      sum[i] = a[i] + b[i];
    return true;
  }
};

class ScaleInPlace : public Vertex {
public:
  InOut<Vector<float>> x;
  Input<float> factor;

  void compute() {
    for (auto &v : x)
      v *= factor;
  }
};

class SumToScalar : public Vertex {
public:
  Input<Vector<int>> x;
  Output<int> total;
  Output<float> mean;

  bool compute() {
    int s = 0;
    for (auto it = x.begin(); it != x.end(); ++it)
      s += *it;
    *total = s;
    mean = float(s) / x->size();
    return true;
  }
};

class Accumulate : public Vertex {
public:
  Input<float> x;
  InOut<float> total;
  InOut<unsigned> count;

  bool compute() {
    total += *x;
    ++*count;
    return true;
  }
};

// Plain members are state; most are const, and one is a counter.
class CountCalls : public Vertex {
  const float scale;
  const unsigned step;
  bool doubled;
  int calls;

public:
  Output<Vector<float>> out;

  bool compute() {
    calls += step;
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = scale * calls * (doubled ? 2 : 1);
    return true;
  }
};

class JaggedSum : public Vertex {
public:
  Vector<Input<Vector<float>>> rows;
  Output<Vector<float>> sums;

  bool compute() {
    for (unsigned r = 0; r < rows.size(); ++r) {
      float s = 0;
      for (unsigned i = 0; i < rows[r].size(); ++i)
        s += rows[r][i];
      sums[r] = s;
    }
    return true;
  }
};

class FillRows : public Vertex {
public:
  Vector<Output<Vector<int>>> rows;

  bool compute() {
    int next = 0;
    for (auto &row : rows)
      for (auto &v : row)
        v = next++;
    return true;
  }
};

class ShiftRows : public Vertex {
public:
  Vector<InOut<Vector<int>>, VectorLayout::ONE_PTR> rows;
  const unsigned count;

  bool compute() {
    for (unsigned r = 0; r < count; ++r)
      for (unsigned i = 0; i < rows[r].size(); ++i)
        rows[r][i] += int(r) + 1;
    return true;
  }
};

class PickScalars : public Vertex {
public:
  Vector<Input<float>> from;
  Output<Vector<float>> to;

  bool compute() {
    for (unsigned i = 0; i < from.size(); ++i)
      to[i] = 2 * from[i];
    return true;
  }
};

class BumpScalars : public Vertex {
public:
  Vector<InOut<int>> values;

  bool compute() {
    for (unsigned i = 0; i < values.size(); ++i)
      *values[i] += 10;
    return true;
  }
};

class SpreadScalars : public Vertex {
public:
  Vector<Output<int>> values;
  Input<int> seed;

  bool compute() {
    for (unsigned i = 0; i < values.size(); ++i)
      values[i] = seed + int(i * i);
    return true;
  }
};

// A vector by value is state too.
class Delay : public Vertex {
public:
  Vector<float> line;
  Input<float> x;
  Output<float> y;

  bool compute() {
    *y = line[line.size() - 1];
    for (unsigned i = line.size() - 1; i > 0; --i)
      line[i] = line[i - 1];
    line[0] = *x;
    return true;
  }
};

class Offsets : public Vertex {
  const Vector<int, VectorLayout::ONE_PTR> offsets;

public:
  InOut<Vector<int>> x;

  void compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      x[i] += offsets[i];
  }
};

class ListLengths : public Vertex {
public:
  Input<VectorList<int, VectorListLayout::DELTANELEMENTS>> rows;
  Output<Vector<unsigned>> lengths;

  bool compute() {
    for (unsigned r = 0; r != rows.size(); ++r)
      lengths[r] = rows[r].size();
    return true;
  }
};

class ListScale : public Vertex {
public:
  InOut<VectorList<float, VectorListLayout::COMPACT_DELTAN, 4>> rows;

  bool compute() {
    for (unsigned r = 0; r < rows.size(); ++r)
      for (auto &v : rows[r])
        v *= float(r + 2);
    return true;
  }
};

// Fields through pointers, as older sources use them.
class ThroughPointers : public Vertex {
public:
  Input<Vector<float>> in;
  Output<Vector<float>> out;

  bool compute() {
    const float *from = &in[0];
    float *to = out.data();
    memcpy(to, from, in->size() * sizeof(float));
    std::reverse(out.begin(), out.end());
    return !out.empty();
  }
};
