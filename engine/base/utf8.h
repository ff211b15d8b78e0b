#ifndef TANDEM_ENGINE_BASE_UTF8_H_
#define TANDEM_ENGINE_BASE_UTF8_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// Removes the first character of `text`, which is not empty, and returns its code point. If `text` does not
// begin with a whole character of well-formed UTF-8 (RFC 3629), removes a byte and returns -1.
int32_t TakeCodePoint(absl::string_view* text);

// Returns whether `text` is well-formed UTF-8.
bool IsUtf8(absl::string_view text);

// Returns `text` with each byte that belongs to no UTF-8 character as \xHH. Messages are UTF-8 on the wire,
// so file names and cells of tables pass through this function.
std::string ToUtf8(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_UTF8_H_
