#include "tests/rooms/room_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

// Rooms of the engine that read the API's messages.
constexpr std::array<absl::string_view, 9> kProtoReaders = {
    "engine/initializers", "engine/layers", "engine/losses",   "engine/optimizers", "engine/schedules",
    "engine/metrics",      "engine/data",   "engine/training", "engine/onnx",
};

// The room that every other room may use. It knows no messages and no devices.
constexpr char kBase[] = "engine/base";

// System libraries that the engine does without.
constexpr std::array<absl::string_view, 5> kNotForEngine = {
    "third_party/grpc", "third_party/sqlite", "third_party/cli11", "third_party/curl", "third_party/pugixml",
};

bool IsWithin(absl::string_view package, absl::string_view folder) {
  return package == folder || absl::StartsWith(package, absl::StrCat(folder, "/"));
}

absl::string_view HouseOf(absl::string_view package) { return package.substr(0, package.find('/')); }

bool IsHouse(absl::string_view name) { return name == "engine" || name == "server" || name == "client"; }

absl::string_view NameOf(absl::string_view label) {
  const size_t colon = label.rfind(':');
  if (colon != absl::string_view::npos) return label.substr(colon + 1);
  return label.substr(label.rfind('/') + 1);
}

std::optional<std::string> WhyWrongProto(absl::string_view package, absl::string_view name) {
  const absl::string_view house = HouseOf(package);
  if (house == "client" && name == "internal")
    return "the client knows nothing of how daemon and worker speak";
  if (house != "engine") return std::nullopt;
  if (name != "messages" && name != "data_folder") {
    return "of proto/ the engine may know the public messages and the rules for folders alone";
  }
  const Room* room = FindRoom(package);
  if (room != nullptr &&
      std::find(kProtoReaders.begin(), kProtoReaders.end(), room->path) != kProtoReaders.end()) {
    return std::nullopt;
  }
  return "this room of the engine knows no messages";
}

std::optional<std::string> WhyWrongThirdParty(absl::string_view package, absl::string_view library) {
  if (HouseOf(package) != "engine") return std::nullopt;
  for (const absl::string_view forbidden : kNotForEngine) {
    if (IsWithin(library, forbidden)) return absl::StrCat("the engine does without ", forbidden);
  }
  return std::nullopt;
}

}  // namespace

const std::vector<Room>& RoomTable() {
  static const auto& table = *new std::vector<Room>{
      {"engine/base", 0},
      {"engine/tensor", 1},
      {"engine/graph", 2},
      {"engine/backend", 3},
      {"engine/backends/reference", 4},
      {"engine/backends/cpu", 5},
      {"engine/backends/cuda", 6},
      {"engine/backends", 7},
      {"engine/collectives", 7},
      {"engine/initializers", 8},
      {"engine/losses", 8},
      {"engine/layers", 9},
      {"engine/optimizers", 9},
      {"engine/schedules", 9},
      {"engine/metrics", 9},
      {"engine/data", 10},
      {"engine/checkpoint", 11},
      {"engine/training", 12},
      {"engine/onnx", 13},

      {"server/store", 0},
      {"server/clusters/slurm", 1},
      {"server/clusters/ssh", 1},
      {"server/events", 1},
      {"server/jobs", 2},
      {"server/admission", 3},
      {"server/scheduler", 3},
      {"server/datasets", 4},
      {"server/fetch", 4},
      {"server/sweeps", 4},
      {"server/workers", 4},
      {"server/auth", 5},
      {"server/rpc", 6},
      {"server/http", 6},
      {"server/clusters", 7},
      {"server/worker", 8},
      {"server/daemon", 9},

      {"client/lib", 0},
      {"client/dashboard", 1},
      {"client/cli", 2},
  };
  return table;
}

const Room* FindRoom(absl::string_view package) {
  const Room* best = nullptr;
  for (const Room& room : RoomTable()) {
    if (IsWithin(package, room.path) && (best == nullptr || room.path.size() > best->path.size()))
      best = &room;
  }
  return best;
}

absl::string_view PackageOf(absl::string_view label) {
  absl::ConsumePrefix(&label, "//");
  return label.substr(0, label.find(':'));
}

std::optional<std::string> WhyWrong(const Edge& edge) {
  if (!absl::StartsWith(edge.from, "//") || !absl::StartsWith(edge.to, "//")) return std::nullopt;
  const absl::string_view from = PackageOf(edge.from);
  const absl::string_view to = PackageOf(edge.to);
  const absl::string_view from_house = HouseOf(from);
  const absl::string_view to_house = HouseOf(to);
  // The root package holds package groups and configuration alone.
  if (from.empty() || to.empty() || from == to) return std::nullopt;
  if (to == kBase && (from_house == "client" || from == "proto/job_file")) return std::nullopt;

  if (!IsHouse(from_house)) {
    if ((from_house == "proto" || from_house == "third_party") && to_house != "proto" &&
        to_house != "third_party") {
      return absl::StrCat(from_house, "/ knows nothing of the rest");
    }
    return std::nullopt;
  }
  const Room* from_room = FindRoom(from);
  if (from_room == nullptr) return absl::StrCat(from, " is in no room of the table");
  if (to_house == "proto") return WhyWrongProto(from, NameOf(edge.to));
  if (to_house == "third_party") return WhyWrongThirdParty(from, to);
  if (!IsHouse(to_house)) return absl::StrCat("product code may not depend on ", to_house, "/");

  const Room* to_room = FindRoom(to);
  if (to_room == nullptr) return absl::StrCat(to, " is in no room of the table");
  if (from_room == to_room) return std::nullopt;
  if (from_house != to_house) {
    if (from_house == "client") return "the client sees proto/, third_party/ and engine/base alone";
    if (to_house == "client") return "nothing but tests uses the client";
    if (from_house == "engine") return "the engine knows nothing of the server";
    if (IsWithin(to, "engine/backends") && from_room->path != "server/worker") {
      return "the worker alone knows backends";
    }
    return std::nullopt;
  }
  if (to_room->row == from_room->row) {
    return absl::StrCat(from_room->path, " and ", to_room->path,
                        " stand on one row and do not know each other");
  }
  if (to_room->row > from_room->row) return absl::StrCat(to_room->path, " stands below ", from_room->path);
  return std::nullopt;
}

std::vector<std::string> WrongEdges(const std::vector<Edge>& edges) {
  std::set<std::string> seen;
  std::vector<std::string> wrong;
  for (const Edge& edge : edges) {
    const std::optional<std::string> why = WhyWrong(edge);
    if (!why.has_value()) continue;
    std::string line = absl::StrCat(edge.from, " -> ", edge.to, ": ", *why);
    if (seen.insert(line).second) wrong.push_back(std::move(line));
  }
  return wrong;
}

std::vector<Edge> ParseQueryGraph(absl::string_view text) {
  std::vector<Edge> edges;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    // Lines look like:   "//a:b" -> "//c:d"
    const std::vector<absl::string_view> parts = absl::StrSplit(line, '"');
    if (parts.size() == 5 && absl::StrContains(parts[2], "->")) {
      edges.push_back({std::string(parts[1]), std::string(parts[3])});
    }
  }
  return edges;
}

std::vector<std::string> Reachable(const std::vector<Edge>& edges, const std::string& from) {
  std::multimap<absl::string_view, absl::string_view> next;
  for (const Edge& edge : edges) next.emplace(edge.from, edge.to);
  std::set<absl::string_view> seen = {from};
  std::vector<std::string> order = {from};
  for (size_t i = 0; i < order.size(); ++i) {
    const auto [begin, end] = next.equal_range(order[i]);
    std::vector<std::string> found;
    for (auto it = begin; it != end; ++it) {
      if (seen.insert(it->second).second) found.emplace_back(it->second);
    }
    order.insert(order.end(), found.begin(), found.end());
  }
  return order;
}

}  // namespace tandem
