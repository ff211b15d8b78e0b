#ifndef TANDEM_TESTS_ROOMS_SOURCE_TREE_H_
#define TANDEM_TESTS_ROOMS_SOURCE_TREE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/rooms/room_table.h"

namespace tandem {

// The repository's root, found through the symbolic link that Bazel made of one of its files.
// `source` is that file's path from the root. NOT_FOUND where the link does not lead into a source tree.
absl::StatusOr<std::filesystem::path> SourceRoot(absl::string_view source);

// Folders with a BUILD file below one of the root's folders, as paths from the root.
std::vector<std::string> PackagesBelow(const std::filesystem::path& root, absl::string_view folder);

// An edge for each #include line of the C++ and CUDA files below a folder, from the file to the one that it
// includes; generated headers and those of system libraries count as their targets. Every file is seen, tests
// included.
std::vector<Edge> IncludesBelow(const std::filesystem::path& root, absl::string_view folder);

// The label that stands for an included header, or "" where it is no business of the rooms.
std::string LabelOfInclude(absl::string_view header);

}  // namespace tandem

#endif  // TANDEM_TESTS_ROOMS_SOURCE_TREE_H_
