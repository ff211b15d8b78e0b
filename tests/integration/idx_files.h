#ifndef TANDEM_TESTS_INTEGRATION_IDX_FILES_H_
#define TANDEM_TESTS_INTEGRATION_IDX_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::testing {

// Returns an IDX file of unsigned bytes: the header for these extents, then `bytes` unchanged, even if they
// are too few or too many.
std::string IdxFile(const std::vector<uint32_t>& extents, const std::string& bytes);

// Returns an IDX file of these extents with the bytes 0, 1, 2, ..., each modulo `modulus`.
std::string IdxFile(const std::vector<uint32_t>& extents, int modulus);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_IDX_FILES_H_
