#ifndef TANDEM_TESTS_INTEGRATION_PNG_FILE_H_
#define TANDEM_TESTS_INTEGRATION_PNG_FILE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem::testing {

// Returns a PNG file with `height` rows of `width` pixels. A pixel has 1 (grey) or 3 (colour) bytes.
std::string PngFile(uint32_t height, uint32_t width, int channels, absl::string_view pixels);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_PNG_FILE_H_
