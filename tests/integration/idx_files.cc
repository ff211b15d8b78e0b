#include "tests/integration/idx_files.h"

namespace tandem::testing {

std::string IdxFile(const std::vector<uint32_t>& extents, const std::string& bytes) {
  std::string file = {0, 0, 8, static_cast<char>(extents.size())};
  for (const uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<char>(extent >> shift));
  }
  return file + bytes;
}

std::string IdxFile(const std::vector<uint32_t>& extents, int modulus) {
  size_t size = 1;
  for (const uint32_t extent : extents) size *= extent;
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i % modulus);
  return IdxFile(extents, bytes);
}

}  // namespace tandem::testing
