#include "tests/rooms/source_tree.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool IsSource(const fs::path& path) {
  static const auto& extensions = *new std::set<std::string>{".h", ".cc", ".cu", ".cuh"};
  return extensions.count(path.extension().string()) > 0;
}

std::string LabelOfFile(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return absl::StrCat("//", path.substr(0, slash), ":", path.substr(slash + 1));
}

}  // namespace

absl::StatusOr<fs::path> SourceRoot(absl::string_view source) {
  std::error_code error;
  fs::path path = fs::canonical(fs::path(std::string(source)), error);
  if (error) return absl::NotFoundError(absl::StrCat(source, ": ", error.message()));
  for (const auto& part : fs::path(std::string(source))) {
    (void)part;
    path = path.parent_path();
  }
  if (!fs::exists(path / "WORKSPACE", error)) {
    return absl::NotFoundError(absl::StrCat(path.string(), " has no WORKSPACE: not the source tree"));
  }
  return path;
}

std::vector<std::string> PackagesBelow(const fs::path& root, absl::string_view folder) {
  std::vector<std::string> packages;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(root / std::string(folder), error)) {
    const std::string name = entry.path().filename().string();
    if (name != "BUILD" && name != "BUILD.bazel") continue;
    packages.push_back(fs::relative(entry.path().parent_path(), root).string());
  }
  std::sort(packages.begin(), packages.end());
  return packages;
}

std::string LabelOfInclude(absl::string_view header) {
  if (absl::StartsWith(header, "tandem/internal/")) return "//proto:internal";
  if (absl::StartsWith(header, "google/rpc/")) return "//proto:errors";
  if (absl::StartsWith(header, "tandem/v1/")) {
    const bool service = absl::EndsWith(header, ".grpc.pb.h") || absl::StrContains(header, "_service.pb.h");
    return service ? "//proto:services" : "//proto:messages";
  }
  if (absl::StartsWith(header, "grpcpp/") || absl::StartsWith(header, "grpc/")) return "//third_party/grpc";
  if (absl::StartsWith(header, "SQLiteCpp/") || header == "sqlite3.h") return "//third_party/sqlite";
  for (const absl::string_view house : {"engine/", "server/", "client/", "tests/", "deploy/"}) {
    if (absl::StartsWith(header, house)) return LabelOfFile(header);
  }
  return "";
}

std::vector<Edge> IncludesBelow(const fs::path& root, absl::string_view folder) {
  std::vector<Edge> edges;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(root / std::string(folder), error)) {
    if (!entry.is_regular_file() || !IsSource(entry.path())) continue;
    const std::string from = LabelOfFile(fs::relative(entry.path(), root).string());
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (!absl::StartsWith(line, "#include ")) continue;
      const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::ByAnyChar("\"<>"));
      if (parts.size() < 2) continue;
      std::string to = LabelOfInclude(parts[1]);
      if (!to.empty()) edges.push_back({from, std::move(to)});
    }
  }
  return edges;
}

}  // namespace tandem
