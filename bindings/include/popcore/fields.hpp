// How each kind of field is described to the host, and bound to tile memory before compute runs.
#pragma once
#include <poplar/Vertex.hpp>

#include "shadow.hpp"

namespace popcore {

template <class T> constexpr const char *type_name() {
  using E = std::remove_cv_t<T>;
  if constexpr (std::is_enum_v<E>) return type_name<std::underlying_type_t<E>>();
  else if constexpr (std::is_same_v<E, float>) return "float";
  else if constexpr (std::is_same_v<E, half>) return "half";
  else if constexpr (std::is_same_v<E, bool>) return "bool";
  else if constexpr (std::is_same_v<E, char>) return "char";
  else if constexpr (std::is_same_v<E, signed char>) return "signed char";
  else if constexpr (std::is_same_v<E, unsigned char>) return "unsigned char";
  else if constexpr (std::is_same_v<E, short>) return "short";
  else if constexpr (std::is_same_v<E, unsigned short>) return "unsigned short";
  else if constexpr (std::is_same_v<E, int>) return "int";
  else if constexpr (std::is_same_v<E, unsigned>) return "unsigned int";
  else if constexpr (std::is_same_v<E, long> || std::is_same_v<E, long long>) return "long long";
  else if constexpr (std::is_same_v<E, unsigned long> || std::is_same_v<E, unsigned long long>) return "unsigned long long";
  else if constexpr (std::is_same_v<E, quarter>) return "quarter_f143";
  else return nullptr;
}

template <class T> constexpr const char *spelled() { return __PRETTY_FUNCTION__; }

// Addresses of the pieces of list fields, for one vertex at a time.
class Pieces {
  char *block_ = nullptr;
  std::size_t used_ = 0, capacity_ = 0;

public:
  ~Pieces() { std::free(block_); }
  void reserve(std::size_t bytes) {
    used_ = 0;
    if (bytes > capacity_) {
      std::free(block_);
      capacity_ = 2 * bytes;
      block_ = static_cast<char *>(std::malloc(capacity_));
    }
  }
  template <class T> T *take(std::size_t count) {
    T *made = reinterpret_cast<T *>(block_ + used_);
    used_ += count * sizeof(T);
    return made;
  }
};

// A plain member: state. It is copied in before compute and out after it.
template <class F> struct Binding {
  static constexpr bool allowed = type_name<F>() != nullptr && !std::is_volatile_v<F>;
  static constexpr int direction = POPCORE_STATE, shape = allowed ? POPCORE_SCALAR : POPCORE_NOT_ALLOWED, words = 1, align = 0, flags = 0;
  static constexpr std::size_t piece_bytes = 0, element_bytes = sizeof(F);
  static constexpr const char *type = allowed ? type_name<F>() : spelled<F>();
  POPCORE_PLAIN static void bind(F &field, std::uint8_t *tile, const std::int32_t *word, const std::int32_t *, Pieces &) {
    __builtin_memcpy(const_cast<std::remove_cv_t<F> *>(&field), tile + word[0], sizeof(F));
  }
  POPCORE_PLAIN static void release(F &field, std::uint8_t *tile, const std::int32_t *word) {
    if constexpr (!std::is_const_v<F>)
      __builtin_memcpy(tile + word[0], &field, sizeof(F));
  }
};

template <class T, int Direction> struct ScalarBinding {
  static constexpr int direction = Direction, shape = type_name<T>() ? POPCORE_SCALAR : POPCORE_NOT_ALLOWED, words = 1, align = 0, flags = 0;
  static constexpr std::size_t piece_bytes = 0, element_bytes = sizeof(T);
  static constexpr const char *type = type_name<T>() ? type_name<T>() : spelled<T>();
  template <class F> static void bind(F &field, std::uint8_t *tile, const std::int32_t *word, const std::int32_t *, Pieces &) {
    field.first_ = reinterpret_cast<decltype(field.first_)>(tile + word[0]);
  }
  template <class F> static void release(F &, std::uint8_t *, const std::int32_t *) {}
};

template <class T, int Direction, unsigned Align, bool Interleaved> struct VectorBinding {
  static constexpr bool allowed = type_name<T>() != nullptr;
  static constexpr int direction = Direction, shape = allowed ? POPCORE_VECTOR : POPCORE_NOT_ALLOWED, words = 2, align = int(Align);
  static constexpr int flags = Interleaved ? POPCORE_INTERLEAVED : 0;
  static constexpr std::size_t piece_bytes = 0, element_bytes = sizeof(T);
  static constexpr const char *type = allowed ? type_name<T>() : spelled<T>();
  template <class F> static void bind(F &field, std::uint8_t *tile, const std::int32_t *word, const std::int32_t *, Pieces &) {
    field.first_ = reinterpret_cast<decltype(field.first_)>(tile + word[0]);
    field.count_ = std::uint32_t(word[1]);
  }
  template <class F> static void release(F &, std::uint8_t *, const std::int32_t *) {}
};

template <class T, int Direction, unsigned Align, bool Interleaved> struct ListBinding {
  static constexpr bool allowed = type_name<T>() != nullptr;
  static constexpr int direction = Direction, shape = allowed ? POPCORE_LIST : POPCORE_NOT_ALLOWED, words = 2, align = int(Align);
  static constexpr int flags = Interleaved ? POPCORE_INTERLEAVED : 0;
  static constexpr std::size_t piece_bytes = sizeof(poplar::storage::Counted<T>), element_bytes = sizeof(T);
  static constexpr const char *type = allowed ? type_name<T>() : spelled<T>();
  template <class F> static void bind(F &field, std::uint8_t *tile, const std::int32_t *word, const std::int32_t *table, Pieces &pieces) {
    using Row = std::remove_reference_t<decltype(*field.first_)>;
    const auto count = std::uint32_t(word[1]);
    Row *rows = pieces.take<Row>(count);
    const std::int32_t *piece = table + word[0];
    for (std::uint32_t i = 0; i < count; ++i, piece += 2) {
      rows[i].first_ = reinterpret_cast<decltype(rows[i].first_)>(tile + piece[0]);
      rows[i].count_ = std::uint32_t(piece[1]);
    }
    field.first_ = rows;
    field.count_ = count;
  }
  template <class F> static void release(F &, std::uint8_t *, const std::int32_t *) {}
};

// A vector of edges: each is bound to a piece as if the piece were its words in a row.
template <class E> struct EdgesBinding {
  using Inner = Binding<E>;
  static constexpr bool allowed = Inner::direction != POPCORE_STATE && (Inner::shape == POPCORE_VECTOR || Inner::shape == POPCORE_SCALAR);
  static constexpr int direction = Inner::direction, shape = allowed ? POPCORE_LIST : POPCORE_NOT_ALLOWED, words = 2, align = Inner::align;
  static constexpr int flags = Inner::flags | (Inner::shape == POPCORE_SCALAR ? POPCORE_PIECES_ARE_SCALARS : 0);
  static constexpr std::size_t piece_bytes = sizeof(E), element_bytes = Inner::element_bytes;
  static constexpr const char *type = Inner::shape == POPCORE_NOT_ALLOWED || allowed ? Inner::type : spelled<poplar::Vector<E>>();
  template <class F> static void bind(F &field, std::uint8_t *tile, const std::int32_t *word, const std::int32_t *table, Pieces &pieces) {
    const auto count = std::uint32_t(word[1]);
    E *edges = pieces.take<E>(count);
    for (std::uint32_t i = 0; i < count; ++i)
      Inner::bind(edges[i], tile, table + word[0] + 2 * i, table, pieces);
    field.first_ = edges;
    field.count_ = count;
  }
  template <class F> static void release(F &, std::uint8_t *, const std::int32_t *) {}
};

template <class T> struct Binding<poplar::Input<T>> : ScalarBinding<T, POPCORE_IN> {};
template <class T> struct Binding<poplar::Output<T>> : ScalarBinding<T, POPCORE_OUT> {};
template <class T> struct Binding<poplar::InOut<T>> : ScalarBinding<T, POPCORE_INOUT> {};

template <class T, poplar::VectorLayout L, unsigned A, bool I>
struct Binding<poplar::Input<poplar::Vector<T, L, A, I>>> : VectorBinding<T, POPCORE_IN, A, I> {};
template <class T, poplar::VectorLayout L, unsigned A, bool I>
struct Binding<poplar::Output<poplar::Vector<T, L, A, I>>> : VectorBinding<T, POPCORE_OUT, A, I> {};
template <class T, poplar::VectorLayout L, unsigned A, bool I>
struct Binding<poplar::InOut<poplar::Vector<T, L, A, I>>> : VectorBinding<T, POPCORE_INOUT, A, I> {};

template <class T, poplar::VectorListLayout L, unsigned A, bool I>
struct Binding<poplar::Input<poplar::VectorList<T, L, A, I>>> : ListBinding<T, POPCORE_IN, A, I> {};
template <class T, poplar::VectorListLayout L, unsigned A, bool I>
struct Binding<poplar::Output<poplar::VectorList<T, L, A, I>>> : ListBinding<T, POPCORE_OUT, A, I> {};
template <class T, poplar::VectorListLayout L, unsigned A, bool I>
struct Binding<poplar::InOut<poplar::VectorList<T, L, A, I>>> : ListBinding<T, POPCORE_INOUT, A, I> {};

template <class T> struct IsEdge : std::false_type {};
template <class T> struct IsEdge<poplar::Input<T>> : std::true_type {};
template <class T> struct IsEdge<poplar::Output<T>> : std::true_type {};
template <class T> struct IsEdge<poplar::InOut<T>> : std::true_type {};

template <class T, poplar::VectorLayout L, unsigned A, bool I>
struct Binding<poplar::Vector<T, L, A, I>> : std::conditional_t<IsEdge<T>::value, EdgesBinding<T>, VectorBinding<T, POPCORE_STATE, A, I>> {};

// A const member is bound like any other: only what is no number has nothing to copy.
template <class F> using BindingOf = Binding<std::conditional_t<type_name<F>() != nullptr, F, std::remove_const_t<F>>>;

template <class F> auto &bindable(F &field) {
  if constexpr (type_name<F>() != nullptr)
    return field;
  else
    return const_cast<std::remove_const_t<F> &>(field);
}

} // namespace popcore
