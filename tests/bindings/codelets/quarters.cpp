// 8-bit floats, whose format and scale come as a byte.
#include <poplar/QuarterFloat.hpp>
#include <poplar/Vertex.hpp>

using namespace poplar;

class FromQuarter : public Vertex {
public:
  Input<Vector<quarter>> codes;
  Input<MetadataType> metadata;
  Output<Vector<float>> values;
  Output<Vector<half>> halves;

  bool compute() {
    const quarter_metadata m = unpackMetadata(*metadata);
    for (unsigned i = 0; i < codes.size(); ++i) {
      values[i] = toFloat(codes[i], m);
      halves[i] = toHalf(codes[i], m);
    }
    return true;
  }
};

template <bool NaNOnOverflow> class ToQuarter : public Vertex {
public:
  Input<Vector<float>> values;
  Input<Vector<MetadataType, VectorLayout::ONE_PTR>> metadata;
  Output<Vector<quarter>> codes;

  bool compute() {
    const MetadataType *packed = &metadata[0];
    for (unsigned i = 0; i < codes.size(); ++i)
      codes[i] = toQuarter(values[i], unpackMetadata(packed), NaNOnOverflow);
    return true;
  }
};
template class ToQuarter<false>;
template class ToQuarter<true>;

// The metadata of a field, as a program without any has it.
class Refill : public Vertex {
public:
  half value;
  Output<Vector<quarter>> codes;

  bool compute() {
    const auto code = toQuarter(value, unpackMetadata(codes.getMetadata()));
    for (auto &each : codes)
      each = code;
    return true;
  }
};
