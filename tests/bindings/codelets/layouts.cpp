// Layouts, alignments, and the short vectors that aligned fields are overlaid with.
#include <ipudef.h>
#include <poplar/AvailableVTypes.h>
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>

using namespace poplar;

static constexpr auto ONE_PTR = VectorLayout::ONE_PTR;
static constexpr auto SPAN = VectorLayout::SPAN;
constexpr unsigned ROW_ALIGNMENT = 8;

template <VectorLayout L> class CopyFrom : public Vertex {
public:
  Input<Vector<float, L>> in;
  Output<Vector<float, SPAN>> out;

  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = in[i];
    return true;
  }
};
template class CopyFrom<VectorLayout::SPAN>;
template class CopyFrom<VectorLayout::SHORT_SPAN>;
template class CopyFrom<VectorLayout::ONE_PTR>;
template class CopyFrom<VectorLayout::COMPACT_PTR>;
template class CopyFrom<VectorLayout::SCALED_PTR32>;
template class CopyFrom<VectorLayout::SCALED_PTR64>;
template class CopyFrom<VectorLayout::SCALED_PTR128>;

class PairsOfFloats : public Vertex {
public:
  Input<Vector<float, ONE_PTR, 8>> a;
  InOut<Vector<float, SPAN, 8>> b;

  bool compute() {
    auto from = reinterpret_cast<const float2 *>(&a[0]);
    auto to = reinterpret_cast<float2 *>(&b[0]);
    for (unsigned i = 0; i < b.size() / 2; ++i)
      to[i] += from[i] * float2{2.0f, 3.0f};
    return true;
  }
};

class QuadsOfHalves : public Vertex {
public:
  Input<Vector<half, ONE_PTR, ROW_ALIGNMENT>> a;
  InOut<Vector<half, SPAN, ROW_ALIGNMENT>> b;

  bool compute() {
    const half4 *from = (const half4 *)&a[0];
    half4 *to = (half4 *)&b[0];
    for (unsigned i = 0; i < b.size() / 4; ++i)
      to[i] = to[i] * from[i] + from[i];
    return true;
  }
};

// Tells the address of each field modulo 64: what was promised can be seen.
template <unsigned Align> class Misalignment : public Vertex {
public:
  Input<Vector<float, ONE_PTR, Align, true>> in;
  InOut<Vector<float, SPAN, Align>> out;
  Vector<Input<Vector<float, ONE_PTR, Align>>, ONE_PTR> rows;

  bool compute() {
    out[0] = float(reinterpret_cast<std::uintptr_t>(&in[0]) % Align);
    out[1] = float(reinterpret_cast<std::uintptr_t>(&out[0]) % Align);
    out[2] = float(reinterpret_cast<std::uintptr_t>(&rows[0][0]) % Align + reinterpret_cast<std::uintptr_t>(&rows[1][0]) % Align);
    out[3] = in[0] + rows[0][0] + rows[1][0];
    return true;
  }
};
template class Misalignment<4>;
template class Misalignment<8>;
template class Misalignment<16>;
template class Misalignment<32>;

struct Pixel {
  unsigned char r, g, b, a;
};

// A struct laid over an array of bytes.
class Grey : public Vertex {
public:
  Input<Vector<unsigned char, SPAN, 4>> pixels;
  Output<Vector<unsigned char>> grey;

  bool compute() {
    auto p = reinterpret_cast<const Pixel *>(&pixels[0]);
    for (unsigned i = 0; i < grey.size(); ++i, ++p)
      grey[i] = static_cast<unsigned char>((p->r + 2 * p->g + p->b) / 4);
    return true;
  }
};
