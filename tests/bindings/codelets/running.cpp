// What codelets tell while they run, and how they fail.
#include <poplar/Vertex.hpp>
#include <print.h>

using namespace poplar;

class Talk : public MultiVertex {
public:
  Input<Vector<float>> x;

  bool compute(unsigned workerId) {
    if (workerId < 2)
      printf("worker %u sees %.1f of %s\n", workerId, x[workerId], "three");
    return true;
  }
};

class Careful : public Vertex {
public:
  Input<Vector<int>> x;
  Output<int> out;

  bool compute() {
    assert(x.size() > 1 && "two are needed");
    if (x[0] == -7)
      abort();
    if (x[0] == -8)
      *reinterpret_cast<volatile int *>(16) = 1;
    *out = 100 / x[0];
    return true;
  }
};

class Endless : public Vertex {
public:
  InOut<Vector<unsigned>> x;

  bool compute() {
    while (x[0] < 5)
      x[1] = x[1] * 3 + x[0];
    return true;
  }
};
