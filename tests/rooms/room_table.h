#ifndef TANDEM_TESTS_ROOMS_ROOM_TABLE_H_
#define TANDEM_TESTS_ROOMS_ROOM_TABLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// A folder with a single purpose. A room may use rooms in earlier rows of its house. It may not use later
// rooms or other rooms of its own row.
struct Room {
  // The path from the repository's root, such as "engine/graph". Packages below belong to the room.
  absl::string_view path;
  // The row within the house, from 0.
  int row;
};

// A dependency between Bazel labels without the repository's name: "//engine/graph:graph".
struct Edge {
  std::string from;
  std::string to;
};

// Returns all rooms of engine/, server/ and client/.
const std::vector<Room>& RoomTable();

// Returns the room of a package ("engine/data/formats" belongs to "engine/data"), or nullptr.
const Room* FindRoom(absl::string_view package);

// Returns "engine/graph" for "//engine/graph:graph" and for "//engine/graph".
absl::string_view PackageOf(absl::string_view label);

// Returns why the edge is wrong, or nothing if it is allowed. Edges from outside the three houses are
// allowed, except from proto/ and third_party/, which may use no house.
std::optional<std::string> WhyWrong(const Edge& edge);

// Returns a line "from -> to: why" for each wrong edge, in order and each once.
std::vector<std::string> WrongEdges(const std::vector<Edge>& edges);

// Returns the edges in the output of `bazel query --output=graph --nograph:factored`.
std::vector<Edge> ParseQueryGraph(absl::string_view text);

// Returns all labels that can be reached from a label, including the label.
std::vector<std::string> Reachable(const std::vector<Edge>& edges, const std::string& from);

}  // namespace tandem

#endif  // TANDEM_TESTS_ROOMS_ROOM_TABLE_H_
