// Small kernels of the sorts that programs for IPUs are made of.
#include <cmath>
#include <poplar/Vertex.hpp>

using namespace poplar;

class Jacobi : public Vertex {
public:
  Input<Vector<float>> in, north, south;
  Output<Vector<float>> out;
  Output<float> change;
  const unsigned width;

  bool compute() {
    const unsigned rows = in.size() / width;
    float worst = 0;
    for (unsigned r = 0; r < rows; ++r)
      for (unsigned c = 0; c < width; ++c) {
        const float up = r ? in[(r - 1) * width + c] : north[c];
        const float down = r + 1 < rows ? in[(r + 1) * width + c] : south[c];
        const float left = c ? in[r * width + c - 1] : 0.0f;
        const float right = c + 1 < width ? in[r * width + c + 1] : 0.0f;
        const float v = 0.25f * (up + down + left + right);
        worst = fmaxf(worst, fabsf(v - in[r * width + c]));
        out[r * width + c] = v;
      }
    *change = worst;
    return true;
  }
};

class MatrixVector : public Vertex {
public:
  Vector<Input<Vector<float, VectorLayout::ONE_PTR>>> matrix;
  Input<Vector<float>> x;
  Output<Vector<float>> y;

  bool compute() {
    for (unsigned r = 0; r < matrix.size(); ++r) {
      float s = 0;
      for (unsigned c = 0; c < x.size(); ++c)
        s += matrix[r][c] * x[c];
      y[r] = s;
    }
    return true;
  }
};

class Softmax : public Vertex {
public:
  InOut<Vector<float>> x;

  bool compute() {
    float top = x[0], total = 0;
    for (float v : x)
      top = std::max(top, v);
    for (auto &v : x)
      total += v = std::exp(v - top);
    for (auto &v : x)
      v /= total;
    return true;
  }
};

class ArgMax : public Vertex {
public:
  Input<Vector<float>> x;
  Output<unsigned> index;

  bool compute() {
    *index = unsigned(std::max_element(x.begin(), x.end()) - x.begin());
    return true;
  }
};

class PrefixSum : public Vertex {
public:
  Input<Vector<int>> in;
  Output<Vector<int>> out;

  bool compute() {
    std::partial_sum(in.begin(), in.end(), out.begin());
    return true;
  }
};

class HeapSort : public Vertex {
public:
  InOut<Vector<int>> x;

  bool compute() {
    std::make_heap(x.begin(), x.end());
    std::sort_heap(x.begin(), x.end());
    return true;
  }
};

class GatherRows : public Vertex {
public:
  Input<Vector<float, VectorLayout::ONE_PTR>> table;
  Input<Vector<unsigned>> index;
  Output<Vector<float, VectorLayout::ONE_PTR>> out;
  const unsigned width;

  bool compute() {
    for (unsigned i = 0; i < index.size(); ++i)
      memcpy(&out[i * width], &table[index[i] * width], width * sizeof(float));
    return true;
  }
};

// Nine populations a cell, as lattice-Boltzmann codes keep them.
class Relax : public MultiVertex {
public:
  InOut<Vector<float>> cells;
  float omega;

  bool compute(unsigned workerId) {
    static constexpr float weight[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};
    for (unsigned c = workerId * 9; c < cells.size(); c += 9 * numWorkers()) {
      float density = 0;
      for (unsigned k = 0; k < 9; ++k)
        density += cells[c + k];
      for (unsigned k = 0; k < 9; ++k)
        cells[c + k] += omega * (weight[k] * density - cells[c + k]);
    }
    return true;
  }
};
