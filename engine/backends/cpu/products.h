#ifndef TANDEM_ENGINE_BACKENDS_CPU_PRODUCTS_H_
#define TANDEM_ENGINE_BACKENDS_CPU_PRODUCTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Matrix products C = A B by tiles (kernels/tiles.h), in bfloat16 with float32 sums.
struct Product {
  std::string name;
  Region a, b, c;
  TileFactor a_form;
  TileFactor b_form;
  TileProduct c_form;  // Without depth and biases.
  // The float32 numbers with which C starts: a number for each row, or a number for each column.
  Region bias = {};
  bool has_row_bias = false;
  bool has_column_bias = false;
  // The number of products, and the elements from a matrix to the next.
  int64_t matrices = 1;
  int64_t a_matrix = 0;
  int64_t b_matrix = 0;
  int64_t c_matrix = 0;
};

// Adds the step of a product. The sums' order does not depend on the number of threads.
void EmitProduct(Lowering& lowering, const Product& product);

// Returns whether tiles compute the products of this node. Otherwise the code without tiles does. Where both
// can, the faster is measured once and remembered (AlgorithmMemory, TANDEM_CPU_ALGORITHMS). Tiles compute
// whatever is not measured.
bool TakesTileProducts(const Lowering& lowering, const Node& node);

// Returns whether tiles read the value from a copy in bfloat16. True if all readers take the value as a
// factor in bfloat16, and if other nodes run between the first and the last reader. During these other nodes
// only the copy is in memory, and the copy has half the bytes. The products' bits are the same with or
// without a copy.
bool IsKeptNarrow(const Lowering& lowering, ValueId id);
// Returns the place of a float32 value for tiles that read the value as a plain factor. Sets form.narrow to
// IsKeptNarrow.
absl::StatusOr<Region> GetTileFactor(Lowering& lowering, ValueId id, TileFactor& form);

// Returns the forms of a row-major matrix [rows, columns] as A, or its transpose's.
TileFactor RowsOfA(int64_t rows, int64_t columns);
TileFactor TransposedA(int64_t rows, int64_t columns);
// Returns the forms of a row-major matrix [rows, columns] as B, or its transpose's.
TileFactor RowsOfB(int64_t rows, int64_t columns);
TileFactor TransposedB(int64_t rows, int64_t columns);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_PRODUCTS_H_
