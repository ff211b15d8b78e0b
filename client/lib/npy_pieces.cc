#include "client/lib/npy_pieces.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tandem::client {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr absl::string_view kShape = "'shape': (";
// Data begin at a multiple of this number.
constexpr size_t kAlignment = 64;

// Returns an NPY file's start for a header's dictionary, in version 1.
std::string Start(absl::string_view dictionary) {
  const size_t before = kMagic.size() + 4 + dictionary.size() + 1;
  const size_t padding = (kAlignment - before % kAlignment) % kAlignment;
  const size_t length = dictionary.size() + padding + 1;
  return absl::StrCat(kMagic, std::string("\x01\x00", 2), std::string(1, static_cast<char>(length & 0xff)),
                      std::string(1, static_cast<char>(length >> 8)), dictionary, std::string(padding, ' '),
                      "\n");
}

}  // namespace

absl::StatusOr<std::vector<NpyPiece>> CutNpy(absl::string_view content, int64_t sample_elements, size_t bytes,
                                             int64_t samples) {
  const absl::Status damaged = absl::InvalidArgumentError("it is no whole file of numpy.save");
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(content[at])); };
  if (content.size() < 12 || !absl::StartsWith(content, kMagic)) return damaged;
  const size_t begin = byte(6) == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (begin == 12) length |= byte(10) << 16 | byte(11) << 24;
  if (length > content.size() - begin || length > 0xf000) return damaged;
  const absl::string_view dictionary = absl::StripAsciiWhitespace(content.substr(begin, length));
  const absl::string_view data = content.substr(begin + length);
  if (!absl::StrContains(dictionary, "'fortran_order': False")) {
    return absl::InvalidArgumentError("it is in Fortran order; save it by numpy.ascontiguousarray");
  }
  const size_t shape = dictionary.find(kShape);
  if (shape == absl::string_view::npos) return damaged;
  const size_t first = shape + kShape.size();
  const size_t close = dictionary.find(')', first);
  if (close == absl::string_view::npos) return damaged;
  std::vector<int64_t> extents;
  for (const absl::string_view part :
       absl::StrSplit(dictionary.substr(first, close - first), ',', absl::SkipWhitespace())) {
    if (!absl::SimpleAtoi(part, &extents.emplace_back()) || extents.back() < 1) return damaged;
  }
  if (extents.empty()) return absl::InvalidArgumentError("it has no dimension of samples");
  const size_t rows = static_cast<size_t>(extents[0]);
  if (data.empty() || data.size() % rows != 0) return damaged;
  int64_t elements = 1;
  for (size_t i = 1; i < extents.size() && elements > 0; ++i) {
    // The product may be beyond 64 bits.
    elements = extents[i] > sample_elements / elements ? 0 : elements * extents[i];
  }
  if (elements != sample_elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("a sample of the model has ", sample_elements, " elements, but its shape is (",
                     dictionary.substr(first, close - first), "); give an array of samples"));
  }
  const size_t row_bytes = data.size() / rows;
  const size_t each = std::clamp<size_t>(bytes / row_bytes, 1, static_cast<size_t>(samples));
  const size_t number_end = dictionary.find_first_of(",)", first);
  std::vector<NpyPiece> pieces;
  for (size_t row = 0; row < rows; row += each) {
    const size_t count = std::min(each, rows - row);
    pieces.push_back(
        {absl::StrCat(Start(absl::StrCat(dictionary.substr(0, first), count, dictionary.substr(number_end))),
                      data.substr(row * row_bytes, count * row_bytes)),
         static_cast<int64_t>(row)});
  }
  return pieces;
}

}  // namespace tandem::client
