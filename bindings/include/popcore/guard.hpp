// Runs a codelet so that a crash, an exception or a call without end becomes a fault of its vertex.
//
// The handlers act only on a thread that is inside a codelet of this library; else they pass on to whoever was there.
#pragma once
#include <popcore/rounding.hpp>
#include <exception>

#include "context.hpp"
#include "shadow.hpp"
#include "statics.hpp"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace popcore {

constexpr int TICK_SIGNAL_OFFSET = 7; // above SIGRTMIN
constexpr long TICK_NANOSECONDS = 100000000;
constexpr int CRASHES[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

inline struct sigaction before[sizeof CRASHES / sizeof CRASHES[0] + 1];
inline thread_local timer_t ticker;
inline thread_local int ticking = 0; // 0: no timer yet; 1: stopped; 2: running

// A handler cannot ask a thread for its `current`: the first look at a thread_local of a library allocates memory, and the signal may have come in the middle
// of malloc. So each thread leaves the address of its own here when it is first in this library; a look at a key allocates nothing.
inline pthread_key_t currents;
inline thread_local bool known = false;

inline Context *interrupted() {
  auto *mine = static_cast<Context **>(pthread_getspecific(currents));
  return mine ? *mine : nullptr;
}

inline void pass_on(const struct sigaction &other, int signal, siginfo_t *info, void *state) {
  if (other.sa_flags & SA_SIGINFO)
    other.sa_sigaction(signal, info, state);
  else if (other.sa_handler != SIG_DFL && other.sa_handler != SIG_IGN)
    other.sa_handler(signal);
  else if (signal < SIGRTMIN && other.sa_handler == SIG_DFL)
    sigaction(signal, &other, nullptr); // happens again, to the default
}

// A stack for the handler of crashes, since one that is full has no room for it. A thread's own, as long as it lives.
constexpr std::size_t HANDLER_BYTES = 64 << 10;
inline pthread_key_t handler_stacks;

inline void take_stack(void *stack) {
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(stack, HANDLER_BYTES);
}

inline void give_stack() {
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || !(stack.ss_flags & SS_DISABLE))
    return; // somebody gave it one
  stack = {};
  stack.ss_size = HANDLER_BYTES;
  stack.ss_sp = mmap(nullptr, HANDLER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack.ss_sp != MAP_FAILED && (pthread_setspecific(handler_stacks, stack.ss_sp) != 0 || sigaltstack(&stack, nullptr) != 0))
    munmap(stack.ss_sp, HANDLER_BYTES);
}

// Whether an access was near the end of the stack that the code used.
inline bool is_stack(const siginfo_t *info, const void *state) {
  const auto *machine = &static_cast<const ucontext_t *>(state)->uc_mcontext;
#if defined(__x86_64__)
  const auto top = std::uintptr_t(machine->gregs[REG_RSP]);
#elif defined(__aarch64__)
  const auto top = std::uintptr_t(machine->sp);
#else
  const std::uintptr_t top = 0;
#endif
  return reinterpret_cast<std::uintptr_t>(info->si_addr) - (top - HANDLER_BYTES) < 2 * HANDLER_BYTES;
}

inline const char *crash_name(int signal, const siginfo_t *info, const void *state) {
  if (signal == SIGSEGV && is_stack(info, state))
    return "the stack is full: a recursion without end, or a local variable that is too large";
  switch (signal) {
  case SIGFPE: return "integer division by zero";
  case SIGILL: return "an instruction that traps";
  case SIGABRT: return "abort()";
  default: return "an access outside of memory";
  }
}

inline void on_crash(int signal, siginfo_t *info, void *state) {
  Context *context = interrupted();
  if (context && context->running)
    fail(context, signal == SIGABRT ? ABORTED : CRASH, crash_name(signal, info, state), "", 0);
  for (unsigned i = 0; i < sizeof CRASHES / sizeof CRASHES[0]; ++i)
    if (CRASHES[i] == signal)
      pass_on(before[i], signal, info, state);
}

inline void set_ticker(long nanoseconds) {
  itimerspec each{};
  each.it_interval.tv_nsec = each.it_value.tv_nsec = nanoseconds;
  timer_settime(ticker, 0, &each, nullptr);
}

inline void on_tick(int signal, siginfo_t *info, void *state) {
  if (info->si_value.sival_ptr != &before) { // the timer of another library
    pass_on(before[sizeof CRASHES / sizeof CRASHES[0]], signal, info, state);
    return;
  }
  Context *context = interrupted();
  if (!context || !context->running) {
    ticking = 1;
    set_ticker(0);
    return;
  }
  const std::int64_t now = thread_time();
  if (context->seen_position != context->position || context->seen_worker != context->worker) {
    context->seen_position = context->position;
    context->seen_worker = context->worker;
    context->seen_at = now;
  } else if (now - context->seen_at >= limit_nanoseconds) {
    fail(context, TIME_LIMIT, "", "", 0);
  }
}

__attribute__((noinline)) inline void start_ticker() {
  if (ticking == 0) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN + TICK_SIGNAL_OFFSET;
    event.sigev_value.sival_ptr = &before;
    event._sigev_un._tid = int(syscall(SYS_gettid));
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &ticker) != 0)
      return;
  }
  ticking = 2;
  set_ticker(TICK_NANOSECONDS);
}

inline const char *kept(const char *text) {
  static thread_local char copy[512];
  std::snprintf(copy, sizeof copy, "%s", text);
  return copy;
}

using Body = void (*)(const void *what, Context *context);

__attribute__((noinline)) inline void call_body(Body body, const void *what, Context *context) {
  try {
    body(what, context);
  } catch (const std::exception &error) {
    fail(context, THROWN, kept(error.what()), "", 0);
  } catch (...) {
    fail(context, THROWN, "something that is no std::exception", "", 0);
  }
}

// Returns 0, or 1 + the position of the vertex that gave up.
inline std::int64_t guarded(std::uint64_t *aux, Body body, const void *what, const Context *of = nullptr) {
  Context context; // not cleared: registers are as random as on a tile that was reset
  context.aux = aux;
  context.prints = of ? of->prints : aux;
  context.position = of ? of->position : 0;
  context.tile = of ? of->tile : 0;
  context.worker = 0;
  context.random = 0;
  context.memory = of ? of->memory : nullptr;
  context.key = context.roundings = context.taken = 0;
  context.tally = &tally;
  context.weights = of ? of->weights : no_weights;
  context.scale = 0;
  context.seen_position = -1;
  context.seen_at = 0;
  context.seen_worker = 0;
  __builtin_memset(context.accumulators, 0, sizeof context.accumulators);
#ifdef POPCORE_CHECK
  context.vertex = of ? of->vertex : nullptr;
  context.name_of = of ? of->name_of : nullptr;
#endif
  Context *const outer = current;
  if (!known) {
    known = pthread_setspecific(currents, &current) == 0;
    give_stack();
  }
  if (limit_nanoseconds && ticking != 2)
    start_ticker();
  current = &context;
  std::int64_t result = 0;
  if (sigsetjmp(context.out, 0) == 0) {
    context.running = true;
    call_body(body, what, &context);
    context.running = false;
  } else {
    result = 1 + static_cast<volatile Context &>(context).position;
    swap_out(); // no destructor ran
  }
  current = outer;
  return result;
}

// The six workers of a vertex on threads of their own, for codelets whose workers wait for one another.
struct Worker {
  Context *of;
  void *vertex;
  void (*compute)(void *vertex, unsigned worker);
  unsigned number;
  std::uint64_t aux[POPCORE_AUX_WORDS];
  std::int64_t result;
  pthread_t thread;
  std::uint64_t taken;
};

inline void *run_worker(void *what) {
  auto *worker = static_cast<Worker *>(what);
  worker->result = guarded(
      worker->aux,
      [](const void *w, Context *context) {
        auto *me = static_cast<Worker *>(const_cast<void *>(w));
        context->worker = me->number;
        me->compute(me->vertex, me->number);
        me->taken = context->taken;
      },
      worker, worker->of);
  return nullptr;
}

__attribute__((noinline)) inline void compute_on_threads(Context *context, void *vertex, void (*compute)(void *, unsigned)) {
  Worker workers[6];
  for (unsigned n = 0; n < 6; ++n) {
    workers[n] = Worker{context, vertex, compute, n, {}, 0, {}, 0};
    __builtin_memcpy(workers[n].aux, context->aux, sizeof workers[n].aux);
  }
  context->running = false; // this thread only waits
  bool started[6];
  for (unsigned n = 6; n-- > 0;)
    started[n] = pthread_create(&workers[n].thread, nullptr, run_worker, &workers[n]) == 0;
  for (unsigned n = 0; n < 6; ++n)
    if (started[n])
      pthread_join(workers[n].thread, nullptr);
  for (unsigned n = 6; n-- > 0;) {
    if (started[n] && workers[n].taken > context->taken)
      context->taken = workers[n].taken;
    if (!started[n])
      fail(context, CRASH, "the system gives no thread for a worker", "", 0);
    if (workers[n].result) {
      context->worker = n;
      if (workers[n].aux[POPCORE_AUX_SITE] != NATIVE_SITE)
        stop_at(context, std::int64_t(workers[n].aux[POPCORE_AUX_SITE]));
      const std::uint64_t *aux = workers[n].aux;
      std::uint64_t values[8];
      std::memcpy(values, aux + POPCORE_AUX_VALUES, sizeof values);
      if (values[0] == THROWN && aux[POPCORE_AUX_COUNT] == 4) // the text is the thread's, which has ended
        values[1] = reinterpret_cast<std::uintptr_t>(kept(reinterpret_cast<const char *>(values[1])));
      fail(context, values, unsigned(aux[POPCORE_AUX_COUNT]), aux[POPCORE_AUX_TAGS]);
    }
  }
  context->running = true;
}

} // namespace popcore

extern "C" __attribute__((weak, visibility("default"))) void popcore_prepare(std::int64_t nanoseconds) {
  using namespace popcore;
  limit_nanoseconds = nanoseconds;
  if (pthread_key_create(&currents, nullptr) != 0 || pthread_key_create(&handler_stacks, take_stack) != 0)
    return; // a thousand libraries: a crash in this one is nobody's
  pthread_atfork(nullptr, nullptr, [] { ticking = 0; }); // timers stay behind
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  action.sa_sigaction = on_crash;
  constexpr unsigned count = sizeof CRASHES / sizeof CRASHES[0];
  for (unsigned i = 0; i < count; ++i)
    sigaction(CRASHES[i], &action, &before[i]);
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  action.sa_sigaction = on_tick;
  sigaction(SIGRTMIN + TICK_SIGNAL_OFFSET, &action, &before[count]);
}
