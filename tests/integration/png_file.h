#ifndef TANDEM_TESTS_INTEGRATION_PNG_FILE_H_
#define TANDEM_TESTS_INTEGRATION_PNG_FILE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem::testing {

// A PNG file of `height` rows of `width` pixels, of 1 (grey) or 3 (colours) bytes each.
std::string PngFile(uint32_t height, uint32_t width, int channels, absl::string_view pixels);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_PNG_FILE_H_
