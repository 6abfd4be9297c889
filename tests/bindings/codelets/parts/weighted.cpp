// A codelet in two files.
#include "helper.hpp"
#include <poplar/Vertex.hpp>

class Weighted : public poplar::Vertex {
public:
  poplar::InOut<poplar::Vector<float>> x;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      x[i] *= weight(i);
    return true;
  }
};
