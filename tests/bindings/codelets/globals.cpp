// Variables outside of vertices: each tile has its own.
#include <poplar/Vertex.hpp>

using namespace poplar;

static int calls = 100;
static float table[4];

class Fill : public Vertex {
public:
  Input<float> start;
  bool compute() {
    for (int i = 0; i < 4; ++i)
      table[i] = start + i;
    ++calls;
    return true;
  }
};

class Look : public Vertex {
public:
  Output<Vector<float>> out;
  bool compute() {
    static int looked = 0;
    ++looked;
    for (unsigned i = 0; i < 4; ++i)
      out[i] = table[i];
    out[4] = float(calls);
    out[5] = float(looked);
    return true;
  }
};
