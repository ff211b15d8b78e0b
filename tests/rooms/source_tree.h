#ifndef TANDEM_TESTS_ROOMS_SOURCE_TREE_H_
#define TANDEM_TESTS_ROOMS_SOURCE_TREE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/rooms/room_table.h"

namespace tandem {

// Returns the repository's root. Follows the symbolic link that Bazel made of `source`, a path from the root.
// NOT_FOUND if the link does not lead to a source tree.
absl::StatusOr<std::filesystem::path> SourceRoot(absl::string_view source);

// Returns all folders with a BUILD file below a folder of the root, as paths from the root.
std::vector<std::string> PackagesBelow(const std::filesystem::path& root, absl::string_view folder);

// Returns an edge for each #include line of the C++ and CUDA files below a folder, including tests. The edge
// leads from the file to the included file. Generated headers and headers of system libraries count as their
// targets.
std::vector<Edge> IncludesBelow(const std::filesystem::path& root, absl::string_view folder);

// Returns the label of an included header, or "" if the rooms do not concern it.
std::string LabelOfInclude(absl::string_view header);

}  // namespace tandem

#endif  // TANDEM_TESTS_ROOMS_SOURCE_TREE_H_
