/* A codelet in C: see docs/codelet_abi.md. */
#include <popcore/codelet_abi.h>
#include <stddef.h>

static int64_t scale_add(uint8_t *mem, const int64_t *tile_base, const int32_t *tiles, int64_t t0, int64_t t1, const int32_t *rows, int64_t nrows,
                         uint64_t *aux) {
  for (int64_t k = t0; k < t1; ++k) {
    uint8_t *tile = mem + tile_base[tiles[k]];
    for (int64_t r = 0; r < nrows; ++r) {
      const int32_t *row = rows + 5 * r;
      const float *x = (const float *)(tile + row[0]);
      float *y = (float *)(tile + row[2]);
      const float factor = *(const float *)(tile + row[4]);
      if (row[1] != row[3]) {
        aux[POPCORE_AUX_SITE] = 0;
        aux[POPCORE_AUX_COUNT] = 0;
        return 1 + k * nrows + r;
      }
      for (int32_t i = 0; i < row[3]; ++i)
        y[i] += factor * x[i];
    }
  }
  return 0;
}

static const popcore_field fields[] = {
    {"x", "float", POPCORE_IN, POPCORE_VECTOR, 0, 0},
    {"y", "float", POPCORE_INOUT, POPCORE_VECTOR, 0, 0},
    {"factor", "float", POPCORE_STATE, POPCORE_SCALAR, 0, 0},
};

const popcore_type popcore_types[] = {{"ScaleAdd", fields, scale_add, 3, 1, 0, 0}};
const int32_t popcore_type_count = 1;
const int32_t popcore_abi_version = POPCORE_ABI_VERSION;
