// Functions and builtins of the tile.
#include <ipu_builtins.h>
#include <ipu_memory_intrinsics>
#include <ipu_vector_math>
#include <poplar/HalfFloat.hpp>
#include <poplar/TileConstants.hpp>
#include <poplar/Vertex.hpp>

using namespace poplar;

class PostIncrement : public Vertex {
public:
  Input<Vector<float, VectorLayout::ONE_PTR, 8>> in;
  Output<Vector<float, VectorLayout::ONE_PTR, 8>> out;
  const rptsize_t pairs;

  bool compute() {
    const float2 *from = reinterpret_cast<const float2 *>(&in[0]);
    float2 *to = reinterpret_cast<float2 *>(&out[0]);
    for (unsigned i = 0; i < pairs; ++i) {
      float2 v = ipu::load_postinc(&from, 1);
      ipu::store_postinc(&to, ipu::fabs(v), 1);
    }
    return true;
  }
};

template <typename T> class Functions : public Vertex {
public:
  Input<Vector<T>> x;
  Vector<Output<Vector<T>>> out;

  void compute() {
    for (unsigned i = 0; i < x.size(); ++i) {
      const T v = x[i];
      out[0][i] = ipu::sqrt(v);
      out[1][i] = ipu::exp(v);
      out[2][i] = ipu::rsqrt(v);
      out[3][i] = ipu::clamp(v, T(0.5f), T(2.0f));
      out[4][i] = ipu::copysign(v, T(-1.0f));
      out[5][i] = ipu::fmax(v, T(1.5f));
    }
  }
};
template class Functions<float>;
template class Functions<half>;

class Axpy : public Vertex {
public:
  Input<Vector<float, VectorLayout::SPAN, 8>> x;
  InOut<Vector<float, VectorLayout::ONE_PTR, 8>> y;
  const float a;

  bool compute() {
    __builtin_ipu_put_tas(a);
    auto xs = reinterpret_cast<const float2 *>(&x[0]);
    auto ys = reinterpret_cast<float2 *>(&y[0]);
    const unsigned n = x.size() / 2;
    for (unsigned i = 0; i <= n; ++i) {
      const unsigned j = i < n ? i : n - 1;
      const float2 done = __builtin_ipu_f32v2axpy(xs[j], ys[j]);
      if (i)
        ys[i - 1] = done;
    }
    return true;
  }
};

class WhereAmI : public MultiVertex {
public:
  Output<Vector<unsigned>> out;

  bool compute(unsigned workerId) {
    out[workerId] = __builtin_ipu_get_tile_id() * 100 + (__builtin_ipu_get(CSR_W_WSR__INDEX) & CSR_W_WSR__CTXTID_M1__MASK);
    return true;
  }
};

class Noise : public Vertex {
public:
  Output<Vector<float>> uniform, normal;

  bool compute() {
    for (auto &v : uniform)
      v = __builtin_ipu_urand_f32();
    for (unsigned i = 0; i + 1 < normal.size(); i += 2) {
      float2 v = __builtin_ipu_f32v2grand();
      normal[i] = v[0];
      normal[i + 1] = v[1];
    }
    return true;
  }
};

class Bits : public Vertex {
public:
  InOut<Vector<unsigned>> x;

  bool compute() {
    x[0] = __builtin_ipu_clz(x[0]);
    x[1] = __builtin_ipu_popc(x[1]);
    x[2] = __builtin_ipu_bitrev8(x[2]);
    x[3] = __builtin_ipu_andc(x[3], 0xffu);
    x[4] = unsigned(__builtin_ipu_max(3, int(x[4])));
    return true;
  }
};
