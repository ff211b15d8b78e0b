#include "server/datasets/upload_path.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tandem {
namespace {

constexpr size_t kMaxPath = 1024;
constexpr size_t kMaxPart = 255;
// Bounds folders, because each takes a block of the disk and is not declared.
constexpr size_t kMaxParts = 32;

}  // namespace

absl::Status CheckUploadPath(absl::string_view path) {
  const auto wrong = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("is '", absl::CHexEscape(path.substr(0, 200)),
                                                   path.size() > 200 ? "..." : "", "', which ", what...));
  };
  if (path.empty()) return absl::InvalidArgumentError("is empty");
  if (path.size() > kMaxPath) return wrong("has ", path.size(), " bytes; at most ", kMaxPath, " are allowed");
  if (path.front() == '/') return wrong("is absolute; a file's path is relative to the upload");
  for (const char c : path) {
    if (absl::ascii_iscntrl(c) || c == '\\') return wrong("holds a control character or a backslash");
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  if (parts.size() > kMaxParts) {
    return wrong("is ", parts.size() - 1, " folders deep; at most ", kMaxParts - 1, " are allowed");
  }
  for (const absl::string_view part : parts) {
    if (part.empty()) return wrong("has an empty part");
    if (part == "." || part == "..") return wrong("has the part '", part, "'");
    if (part.size() > kMaxPart) return wrong("has a part of ", part.size(), " bytes; at most ", kMaxPart);
  }
  return absl::OkStatus();
}

}  // namespace tandem
