#ifndef TANDEM_ENGINE_DATA_FORMATS_TEST_BYTES_H_
#define TANDEM_ENGINE_DATA_FORMATS_TEST_BYTES_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

// Bytes of files for tests.

namespace tandem {

// Returns a number in `bytes` bytes, the lowest first.
inline std::string Little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

// Returns an NPY file with these bytes of elements.
inline std::string Npy(const std::string& descr, const std::string& shape, const std::string& elements,
                       const std::string& fortran = "False") {
  std::string header =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", fortran, ", 'shape': ", shape, ", }");
  header.append(63 - (10 + header.size()) % 64, ' ');
  header.push_back('\n');
  return std::string("\x93NUMPY\x01\x00", 8) + Little(header.size(), 2) + header + elements;
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_TEST_BYTES_H_
