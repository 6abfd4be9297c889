// Every way to end a process that a codelet can find.
#include <cassert>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <poplar/Vertex.hpp>
#include <stdexcept>
#include <unistd.h>

using namespace poplar;

static int calls = 0;

__attribute__((noinline)) int deeper(volatile int *depth) {
  volatile int here[64];
  here[*depth & 63] = *depth;
  ++*depth;
  return deeper(depth) + here[*depth & 63];
}

__attribute__((noinline)) void never_throws() noexcept { throw std::runtime_error("thrown where nothing may be"); }

class Crash : public Vertex {
public:
  Input<int> how;
  Vector<unsigned> address; // two words of it
  InOut<Vector<int>> x;

  bool compute() {
    x[0] += 1;
    x[1] = ++calls;
    volatile int depth = 0;
    switch (int(how)) {
    case 1: *reinterpret_cast<volatile int *>(8) = 1; break;
    case 2: std::abort();
    case 3: std::exit(3);
    case 4: _exit(0);
    case 5: x[2] = deeper(&depth); break;
    case 6: throw std::runtime_error("of its own");
    case 7: never_throws(); break;
    case 8: {
      char *volatile block = static_cast<char *>(std::malloc(40)); // volatile: else the compiler sees the pair, or the second time
      std::free(block);
      std::free(block);
      break;
    }
    case 9: kill(getpid(), SIGKILL); break;
    case 10: assert(x[0] < 0); break;
    case 11: raise(SIGTERM); break;
    case 12: x[2] = 1000 / depth; break;
    case 13: std::terminate();
    case 14: *reinterpret_cast<volatile int *>(std::uintptr_t(address[1]) << 32 | address[0]) = 99; break;
    default: break;
    }
    return true;
  }
};
