#ifndef TANDEM_TESTS_ROOMS_ROOM_TABLE_H_
#define TANDEM_TESTS_ROOMS_ROOM_TABLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// A folder with one job. What stands further down the table may use what stands above it in the same house,
// never the reverse; rooms of one row do not know each other.
struct Room {
  // From the repository's root, such as "engine/graph"; packages below it belong to it.
  absl::string_view path;
  // Its row within its house, from 0.
  int row;
};

// One dependency, as Bazel's labels without the name of the repository: "//engine/graph:graph".
struct Edge {
  std::string from;
  std::string to;
};

// Every room of engine/, server/ and client/.
const std::vector<Room>& RoomTable();

// The room that a package belongs to ("engine/data/formats" is of "engine/data"), or nullptr.
const Room* FindRoom(absl::string_view package);

// "engine/graph" for "//engine/graph:graph" and for "//engine/graph".
absl::string_view PackageOf(absl::string_view label);

// Why there must be no such edge; nothing where it is allowed. Edges from outside the three houses are
// allowed but for those from proto/ and third_party/, which know no house.
std::optional<std::string> WhyWrong(const Edge& edge);

// A line "from -> to: why" for each wrong edge, in order and each once.
std::vector<std::string> WrongEdges(const std::vector<Edge>& edges);

// The edges in what `bazel query --output=graph --nograph:factored` prints.
std::vector<Edge> ParseQueryGraph(absl::string_view text);

// All labels that can be reached from a label, itself included.
std::vector<std::string> Reachable(const std::vector<Edge>& edges, const std::string& from);

}  // namespace tandem

#endif  // TANDEM_TESTS_ROOMS_ROOM_TABLE_H_
