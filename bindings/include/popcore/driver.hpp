// The driver of a codelet: binds each vertex's fields, runs compute, and turns what goes wrong into a fault.
//
// Included before every codelet source; generated code after the source says which members a vertex class has.
#pragma once
#include <popcore/memory.hpp>
#include <popcore/builtins.hpp>
#include <popcore/fields.hpp>
#include <popcore/guard.hpp>
#include <popcore/rounding.hpp>
#include <popcore/statics.hpp>

#define printf popcore_printf

namespace std {
using ::popcore_printf;
}

namespace popcore {

template <class M> struct Member {
  static constexpr bool is_data = false;
};
template <class T, class C> struct Member<T C::*> {
  static constexpr bool is_data = !std::is_function_v<T>;
  using type = T;
};
template <auto M> using MemberType = typename Member<decltype(M)>::type;

template <class V, class = void> struct TakesWorker : std::false_type {};
template <class V> struct TakesWorker<V, std::void_t<decltype(std::declval<V &>().compute(0u))>> : std::true_type {};

struct CountFields {
  int count = 0;
  template <auto M> constexpr void visit(const char *) { ++count; }
};

template <int N> struct FieldTable {
  popcore_field fields[N + 1] = {};
  int used = 0;
  template <auto M> constexpr void visit(const char *name) {
    using B = BindingOf<MemberType<M>>;
    fields[used++] = popcore_field{name, B::type, B::direction, B::shape, B::align, B::flags};
  }
};

template <class V> struct Bind {
  V &vertex;
  std::uint8_t *tile;
  const std::int32_t *word, *table;
  Pieces &pieces;
  template <auto M> void visit(const char *) {
    using B = BindingOf<MemberType<M>>;
    B::bind(bindable(vertex.*M), tile, word, table, pieces);
    word += B::words;
  }
};

template <class V> struct Release {
  V &vertex;
  std::uint8_t *tile;
  const std::int32_t *word;
  template <auto M> void visit(const char *) {
    using B = BindingOf<MemberType<M>>;
    B::release(bindable(vertex.*M), tile, word);
    word += B::words;
  }
};

struct Measure { // words of a row; whether it has lists
  int words = 0;
  bool lists = false;
  template <auto M> constexpr void visit(const char *) {
    words += BindingOf<MemberType<M>>::words;
    lists = lists || BindingOf<MemberType<M>>::piece_bytes;
  }
};

struct MeasurePieces {
  const std::int32_t *word;
  std::size_t bytes = 0;
  template <auto M> void visit(const char *) {
    using B = BindingOf<MemberType<M>>;
    if constexpr (B::piece_bytes != 0)
      bytes += B::piece_bytes * std::size_t(word[1]);
    word += B::words;
  }
};

template <class V, class Fields> constexpr Measure measure() {
  Measure made;
  Fields::template each<V>(made);
  return made;
}

template <class V, class Fields> constexpr auto describe_fields() {
  constexpr int count = [] {
    CountFields counter;
    Fields::template each<V>(counter);
    return counter.count;
  }();
  FieldTable<count> table;
  Fields::template each<V>(table);
  return table;
}

#ifdef POPCORE_TRAPS
#define POPCORE_APART __attribute__((noinline)) // what is raised inside must not move past where flags are cleared and looked at
#else
#define POPCORE_APART
#endif

template <class V> POPCORE_APART void call_compute(V &vertex, [[maybe_unused]] unsigned worker) {
  if constexpr (TakesWorker<V>::value)
    vertex.compute(worker);
  else
    vertex.compute();
}

// Never called: what compute does is read in what the compiler writes of these. Flat, that does not depend on what else is compiled; of a
// large source it would be too much.
template <class V> __attribute__((noinline, noclone, flatten)) void written(V &vertex, unsigned worker) { call_compute(vertex, worker); }
template <class V> __attribute__((noinline, noclone)) void written_apart(V &vertex, unsigned worker) { call_compute(vertex, worker); }

template <class V> void compute_as(V &vertex, Context *context, unsigned worker) {
  context->worker = worker;
  begin_rounding(context, worker);
  clear_flags();
  Tally &mine = *context->tally;
  mine.weights = context->weights;
  mine.spent = 0;
  call_compute(vertex, worker);
  if (mine.spent > context->taken)
    context->taken = mine.spent;
  check_flags(context);
}

template <class V> void compute(V &vertex, Context *context, bool threads) {
  if constexpr (TakesWorker<V>::value) {
    if (threads) { // they wait for each other, which gives their accesses an order that is not known here
      compute_on_threads(context, &vertex, [](void *v, unsigned worker) { compute_as(*static_cast<V *>(v), current, worker); });
      return;
    }
    for (unsigned left = 6; left-- > 0;) {
#ifdef POPCORE_ORDER
      const unsigned worker = context->aux[POPCORE_AUX_ORDER] >> 4 * (5 - left) & 15;
#else
      const unsigned worker = left;
#endif
      watch_worker(worker + 1);
      compute_as(vertex, context, worker);
    }
  } else {
    compute_as(vertex, context, 0);
  }
}

#ifdef POPCORE_CHECK
template <class V> struct FindName {
  const V &vertex;
  const void *accessor, *first;
  const char *found = nullptr;
  template <auto M> void visit(const char *name) {
    if constexpr (BindingOf<MemberType<M>>::words == 2) {
      const auto &member = vertex.*M;
      bool here = accessor == static_cast<const void *>(std::addressof(member)) || first == static_cast<const void *>(member.first_);
      if constexpr (BindingOf<MemberType<M>>::piece_bytes != 0)
        here = here || (accessor >= member.first_ && accessor < member.first_ + member.count_);
      if (here && !found)
        found = name;
    }
  }
};

template <class V, class Fields> const char *name_of(const void *vertex, const void *accessor, const void *first) {
  FindName<V> find{*static_cast<const V *>(vertex), accessor, first};
  Fields::template each<V>(find);
  return find.found;
}
#endif

// In the shadow, before a vertex runs: what its Outputs hold is undefined, and no worker has been anywhere.
struct Begin {
  const std::uint64_t *aux;
  const std::uint8_t *tile;
  const std::int32_t *word, *table;
  bool shared;
  template <auto M> void visit(const char *) {
    using B = BindingOf<MemberType<M>>;
    constexpr bool output = B::direction == POPCORE_OUT;
    if constexpr (B::shape == POPCORE_SCALAR)
      begin_memory(aux, tile + word[0], B::element_bytes, output, shared);
    else if constexpr (B::shape == POPCORE_VECTOR)
      begin_memory(aux, tile + word[0], B::element_bytes * std::size_t(word[1]), output, shared);
    else
      for (std::int32_t i = 0; i < word[1]; ++i) {
        const std::int32_t *piece = table + word[0] + 2 * i;
        begin_memory(aux, tile + piece[0], B::element_bytes * std::size_t(piece[1]), output, shared);
      }
    word += B::words;
  }
};

struct Call { // of a driver
  std::uint8_t *mem;
  const std::int64_t *tile_base;
  const std::int32_t *tiles;
  std::int64_t t0, t1;
  const std::int32_t *rows;
  std::int64_t nrows;
};

template <class V, class Fields> __attribute__((noinline)) void run(const Call &call, Context *context) {
  constexpr Measure size = measure<V, Fields>();
  alignas(V) unsigned char raw[sizeof(V)] = {}; // never constructed: constructors of vertices are often not defined
  V &vertex = *reinterpret_cast<V *>(raw);
  Pieces pieces;
  context->memory = call.mem;
  context->weights = Fields::weights;
  auto *const counted = reinterpret_cast<std::uint64_t *>(context->aux[POPCORE_AUX_COUNTED]);
  for (std::int64_t k = call.t0; k < call.t1; ++k) {
    context->tile = call.tiles[k];
    std::uint8_t *tile = call.mem + call.tile_base[call.tiles[k]];
    const std::int32_t *row = call.rows;
    StaticsOfTile statics(call.mem, call.tiles[k]);
    for (std::int64_t r = 0; r < call.nrows; ++r, row += size.words) {
      context->position = k * call.nrows + r;
      context->aux[POPCORE_AUX_POSITION] = std::uint64_t(context->position); // for who finds this process dead
      if constexpr (size.lists) {
        MeasurePieces needed{row};
        Fields::template each<V>(needed);
        pieces.reserve(needed.bytes);
      }
#ifdef POPCORE_CHECK
      context->vertex = &vertex;
      context->name_of = name_of<V, Fields>;
#endif
      if constexpr (shadowed) {
        Begin begin{context->aux, tile, row, call.rows, TakesWorker<V>::value && !Fields::threads};
        Fields::template each<V>(begin);
      }
      Bind<V> bind{vertex, tile, row, call.rows, pieces};
      Fields::template each<V>(bind);
      context->taken = 0;
      compute(vertex, context, Fields::threads);
      if (counted)
        counted[context->position] = context->taken;
      Release<V> release{vertex, tile, row};
      Fields::template each<V>(release);
    }
  }
}

template <class V, class Fields>
std::int64_t drive(std::uint8_t *mem, const std::int64_t *tile_base, const std::int32_t *tiles, std::int64_t t0, std::int64_t t1,
                   const std::int32_t *rows, std::int64_t nrows, std::uint64_t *aux) {
  const Call call{mem, tile_base, tiles, t0, t1, rows, nrows};
  [[maybe_unused]] const Watching watching(aux, TakesWorker<V>::value && !Fields::threads);
  return guarded(
      aux, [](const void *what, Context *context) { run<V, Fields>(*static_cast<const Call *>(what), context); }, &call);
}

template <class V> constexpr int workers() { return TakesWorker<V>::value ? 6 : 1; }

constexpr std::int32_t no_compute = POPCORE_NO_COMPUTE, abi_version = POPCORE_ABI_VERSION; // generated code comes after the preprocessor

} // namespace popcore
