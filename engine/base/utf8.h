#ifndef TANDEM_ENGINE_BASE_UTF8_H_
#define TANDEM_ENGINE_BASE_UTF8_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// Takes the first character off `text`, which is not empty, and returns its code point. Where the text does
// not begin with a whole character of well-formed UTF-8 (RFC 3629), it takes one byte and returns -1.
int32_t TakeCodePoint(absl::string_view* text);

bool IsUtf8(absl::string_view text);

// `text` with every byte that belongs to no character of UTF-8 written as \xHH: what names of files and the
// contents of tables become in messages, which are UTF-8 on the wire.
std::string ToUtf8(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_UTF8_H_
