/* The C interface of codelets: what a library of codelets defines, and how it is called.
 *
 * Compiled C++ codelets meet it through generated code; a codelet in C, or in any language that can make a shared
 * library, meets it by hand. docs/codelet_abi.md explains it with an example.
 *
 * One text for the compiler and for cffi: codelet_abi.py is made of it by make_abi.py.
 */
#ifndef POPCORE_CODELET_ABI_H
#define POPCORE_CODELET_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POPCORE_ABI_VERSION 1

/* Words of the block ``aux`` that a driver is given. Words not named here are not for drivers. */
#define POPCORE_AUX_SITE 0
#define POPCORE_AUX_COUNT 1
#define POPCORE_AUX_VALUES 2
#define POPCORE_AUX_TAGS 10
#define POPCORE_AUX_WORKER 11
#define POPCORE_AUX_PRINT_BUFFER 12
#define POPCORE_AUX_PRINT_CAPACITY 13
#define POPCORE_AUX_PRINT_USED 14
#define POPCORE_AUX_PRINT_LOST 15
#define POPCORE_AUX_PHASE 16
#define POPCORE_AUX_POSITION 17
#define POPCORE_AUX_TILE 18
#define POPCORE_AUX_SHADOW 19
#define POPCORE_AUX_ARENA 20
#define POPCORE_AUX_ARENA_BYTES 21
#define POPCORE_AUX_BATCH 22
#define POPCORE_AUX_STREAMS 23
#define POPCORE_AUX_NOTE 27
#define POPCORE_AUX_TABLE 28
#define POPCORE_AUX_ORDER 30
#define POPCORE_AUX_COUNTED 32 /* host: address of the first vertex's word among those of the batch, or 0; see popcore_counters */
#define POPCORE_AUX_WORDS 40

/* Directions, shapes and flags of fields. */
#define POPCORE_STATE 0
#define POPCORE_IN 1
#define POPCORE_OUT 2
#define POPCORE_INOUT 3

#define POPCORE_SCALAR 0
#define POPCORE_VECTOR 1
#define POPCORE_LIST 2
#define POPCORE_NOT_ALLOWED 3

#define POPCORE_INTERLEAVED 1
#define POPCORE_PIECES_ARE_SCALARS 2

/* Flags of types. */
#define POPCORE_PRINTS 1
#define POPCORE_NO_COMPUTE 2 /* a base of codelets, and none itself */

/* Runs the vertices of rows [0, nrows) on each of the tiles tiles[t0] ... tiles[t1 - 1].
 *
 * The memory of tile t begins at mem + tile_base[t]. A row is 32-bit words, field after field:
 *   scalar            byte offset in the tile
 *   vector            byte offset, elements
 *   list              index in ``rows`` of its first piece, number of pieces; a piece is: byte offset, elements
 * Returns 0, or 1 + k * nrows + r if the vertex of row r on tile tiles[k] gave up.
 */
typedef int64_t (*popcore_driver)(uint8_t *mem, const int64_t *tile_base, const int32_t *tiles, int64_t t0, int64_t t1,
                                  const int32_t *rows, int64_t nrows, uint64_t *aux);

typedef struct popcore_field {
  const char *name;
  const char *type; /* "float", "half", "int", "unsigned int", "bool", ...: the name of an element type */
  int32_t direction;
  int32_t shape;
  int32_t align; /* bytes; 0: the element's own */
  int32_t flags;
} popcore_field;

typedef struct popcore_type {
  const char *name;
  const popcore_field *fields;
  popcore_driver driver; /* null: described here, compiled elsewhere */
  int32_t field_count;
  int32_t workers; /* calls of the body for each vertex: 6 if all workers share it, else 1 */
  int32_t flags;
  int32_t index; /* for the host: which of its classes this is; 0 if the table is written by hand */
} popcore_type;

/* What the library defines. */
extern const popcore_type popcore_types[];
extern const int32_t popcore_type_count;
extern const int32_t popcore_abi_version; /* POPCORE_ABI_VERSION */

/* What it may define, with default visibility. */

/* Called once when it has been loaded: a call of a codelet's body that takes longer has to give up. */
void popcore_prepare(int64_t nanoseconds);

typedef struct popcore_variable {
  uint8_t *address;
  int64_t bytes;
} popcore_variable;

/* Called once with the variables that it keeps outside of vertices: each tile is to have its own. */
void popcore_keep_variables(const popcore_variable *variables, int64_t count);

/* The variables of all tiles of the memory ``mem`` start over. */
void popcore_forget(uint8_t *mem);

/* The values that a tile of the memory ``mem`` has for its variables, one after the other. Where they still are those that all tiles
 * begin with: null, unless ``own`` is not 0. May be changed while no codelet runs. */
uint8_t *popcore_variables_of(uint8_t *mem, int32_t tile, int32_t own);

/* For each of popcore_types what its counters add, in sixteenths of a worker cycle: the host writes it. Where there is such a table, the driver
 * leaves what a vertex took, or the slowest of its workers, in the word of its position, k * nrows + r. */
typedef struct popcore_counters {
  uint32_t *adds; /* null: it has none */
  int32_t count;
} popcore_counters;
extern const popcore_counters popcore_type_counters[];

#ifdef __cplusplus
}
#endif

#endif
