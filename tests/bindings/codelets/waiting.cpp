// Workers that wait for one another.
#include <poplar/Vertex.hpp>

using namespace poplar;

// Waits for a seventh worker.
class Deadlock : public MultiVertex {
public:
  InOut<Vector<unsigned>> arrived;

  bool compute(unsigned workerId) {
    volatile unsigned *flags = &arrived[0];
    flags[workerId] = 1;
    while (!flags[numWorkers()])
      ;
    return true;
  }
};

class Barrier : public MultiVertex {
public:
  InOut<Vector<unsigned>> arrived;
  InOut<Vector<int>> x;
  Output<Vector<int>> y;

  bool compute(unsigned workerId) {
    volatile unsigned *flags = &arrived[0];
    x[workerId] *= 2;
    __sync_synchronize();
    flags[workerId] = 1;
    for (unsigned w = 0; w < numWorkers(); ++w)
      while (!flags[w])
        ;
    __sync_synchronize();
    y[workerId] = x[(workerId + 1) % numWorkers()] + x[(workerId + 5) % numWorkers()];
    return true;
  }
};
