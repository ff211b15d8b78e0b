#include "proto/data_folder/data_folder.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Bounds the time of a walk: links may make a small tree look large.
constexpr int kMostLinks = 10000;

constexpr std::array<absl::string_view, 11> kPictureEndings = {
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".dib", ".tif", ".tiff", ".gif",
};

absl::Status CannotRead(const fs::path& folder, const std::error_code& error) {
  return absl::InvalidArgumentError(absl::StrCat(folder.string(), " cannot be read: ", error.message()));
}

// Walks one folder. `above` has the real paths of the folder and of all folders that lead to the folder.
// `links` counts the links to folders.
void Walk(const fs::path& folder, std::vector<fs::path>& above, int& links,
          absl::FunctionRef<void(const fs::path&, bool)> use, absl::Status& status) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (IsSkippedName(entry->path().filename().string())) continue;
    std::error_code ignored;
    if (!entry->is_directory(ignored)) {
      if (entry->is_regular_file(ignored)) use(entry->path(), /*is_folder=*/false);
      continue;
    }
    // Without links, the path of a subfolder of a real path is real.
    const bool is_link = entry->is_symlink(ignored);
    const fs::path real =
        is_link ? fs::canonical(entry->path(), ignored) : above.back() / entry->path().filename();
    if (is_link && ++links > kMostLinks) {
      status.Update(absl::InvalidArgumentError(
          absl::StrCat(entry->path().string(), " is one of more than ", kMostLinks,
                       " links to folders; put the files themselves into the folder")));
      return;
    }
    if (std::find(above.begin(), above.end(), real) != above.end()) {
      status.Update(absl::InvalidArgumentError(absl::StrCat(
          entry->path().string(), " is a link back to the folder ", real.string(), "; remove the link")));
      continue;
    }
    use(entry->path(), /*is_folder=*/true);
    above.push_back(real);
    Walk(entry->path(), above, links, use, status);
    above.pop_back();
  }
  if (error) status.Update(CannotRead(folder, error));
}

bool IsBmp(absl::string_view content) {
  if (content.size() < 18 || !absl::StartsWith(content, "BM")) return false;
  // The size of the second header. Text that begins with "BM" has no such size.
  static constexpr std::array<uint8_t, 7> kSizes = {12, 40, 52, 56, 64, 108, 124};
  const auto size = static_cast<uint8_t>(content[14]);
  return content[15] == 0 && content[16] == 0 && content[17] == 0 &&
         std::find(kSizes.begin(), kSizes.end(), size) != kSizes.end();
}

}  // namespace

bool IsSkippedName(absl::string_view name) {
  return absl::StartsWith(name, ".") || name == "@eaDir" || name == "__MACOSX";
}

bool IsSkippedPath(absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  return std::any_of(parts.begin(), parts.end(),
                     [](absl::string_view part) { return part != "." && IsSkippedName(part); });
}

absl::Status WalkDataFolder(const std::string& folder, absl::FunctionRef<void(const fs::path&, bool)> use) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) return CannotRead(folder, error);
  absl::Status status;
  std::vector<fs::path> above = {real};
  int links = 0;
  Walk(folder, above, links, use, status);
  return status;
}

bool IsPictureName(absl::string_view name) {
  return std::any_of(kPictureEndings.begin(), kPictureEndings.end(),
                     [&](absl::string_view ending) { return absl::EndsWithIgnoreCase(name, ending); });
}

bool IsPictureContent(absl::string_view content) {
  return absl::StartsWith(content, "\xFF\xD8\xFF") || absl::StartsWith(content, "\x89PNG\r\n\x1A\n") ||
         (content.size() >= 12 && absl::StartsWith(content, "RIFF") && content.substr(8, 4) == "WEBP") ||
         absl::StartsWith(content, "GIF87a") || absl::StartsWith(content, "GIF89a") ||
         absl::StartsWith(content, absl::string_view("II*\0", 4)) ||
         absl::StartsWith(content, absl::string_view("MM\0*", 4)) ||
         absl::StartsWith(content, absl::string_view("II+\0", 4)) ||
         absl::StartsWith(content, absl::string_view("MM\0+", 4)) || IsBmp(content);
}

DataPart PartOf(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower == "train" || lower == "training") return DataPart::kTrain;
  if (lower == "val" || lower == "valid" || lower == "validation" || lower == "dev") {
    return DataPart::kValidation;
  }
  return lower == "test" || lower == "testing" ? DataPart::kTest : DataPart::kNone;
}

absl::StatusOr<DataParts> FindDataParts(const std::string& folder,
                                        const std::vector<std::string>& subfolders) {
  DataParts parts;
  bool others = false;
  for (const std::string& name : subfolders) {
    const DataPart part = PartOf(name);
    others = others || part == DataPart::kNone;
    if (part == DataPart::kNone) continue;
    std::string& place = part == DataPart::kTrain        ? parts.train
                         : part == DataPart::kValidation ? parts.validation
                                                         : parts.test;
    if (!place.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(folder, " has two folders for the same part of a data set, ", std::min(place, name),
                       " and ", std::max(place, name), "; give the folder of each part"));
    }
    place = name;
  }
  const bool alone = parts.validation.empty() && parts.test.empty();
  if (parts.train.empty() || (alone && others)) return DataParts();
  return parts;
}

absl::StatusOr<DataParts> FindDataParts(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    std::string name = entry->path().filename().string();
    if (!IsSkippedName(name) && entry->is_directory(ignored)) names.push_back(std::move(name));
  }
  if (error) return DataParts();
  absl::StatusOr<DataParts> parts = FindDataParts(folder, names);
  if (!parts.ok()) return parts;
  for (std::string* part : {&parts->train, &parts->validation, &parts->test}) {
    if (!part->empty()) *part = (fs::path(folder) / *part).string();
  }
  return parts;
}

bool IsArchiveName(absl::string_view path) {
  static constexpr std::array<absl::string_view, 11> kEndings = {
      ".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".tbz", ".tar.zst", ".tzst",
  };
  const absl::string_view name = path.substr(0, path.rfind("#sha256="));
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](absl::string_view ending) { return absl::EndsWithIgnoreCase(name, ending); });
}

}  // namespace tandem
