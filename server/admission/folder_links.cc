#include "server/admission/folder_links.h"

#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Bounds the retries while somebody keeps removing folders.
constexpr int kMostLooks = 5;

using LinkOut = absl::StatusOr<std::optional<std::string>>;

// Returns true if readers of data fail at the same place: the entry is gone, leads nowhere or may not be
// entered.
bool IsHarmless(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory ||
         error == std::errc::too_many_symbolic_link_levels || error == std::errc::permission_denied;
}

absl::Status CannotLook(const fs::path& path, const std::error_code& error) {
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", path.string(), ": ", error.message()));
}

// `seen` has the targets of the links that were followed.
LinkOut Find(const fs::path& folder, const std::function<bool(const fs::path&)>& is_allowed,
             std::set<fs::path>& seen) {
  std::error_code error;
  fs::path last = folder;
  // Readers of data skip a folder without permission and read on.
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  // A link's target may have vanished; the named folder may not.
  if (error && (seen.empty() || !IsHarmless(error))) return CannotLook(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    last = entry->path();
    std::error_code problem;
    const bool is_link = entry->is_symlink(problem);
    if (problem && !IsHarmless(problem)) return CannotLook(last, problem);
    if (!is_link) continue;
    const fs::path target = fs::canonical(last, problem);
    if (problem && !IsHarmless(problem)) return CannotLook(last, problem);
    if (problem) continue;
    if (!is_allowed(target)) return last.string();
    const bool is_folder = fs::is_directory(target, problem);
    if (problem && !IsHarmless(problem)) return CannotLook(last, problem);
    if (!is_folder || !seen.insert(target).second) continue;
    TANDEM_ASSIGN_OR_RETURN(std::optional<std::string> out, Find(target, is_allowed, seen));
    if (out.has_value()) return out;
  }
  // After an error the iterator is at its end, and the rest was not checked.
  if (error && IsHarmless(error)) {
    return absl::UnavailableError(absl::StrCat("cannot check ", last.string(),
                                               " for links: it changed meanwhile (", error.message(),
                                               "); try again"));
  }
  if (error) return CannotLook(last, error);
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::optional<std::string>> FindLinkOut(
    const fs::path& folder, const std::function<bool(const fs::path&)>& is_allowed) {
  std::set<fs::path> seen;
  LinkOut out = Find(folder, is_allowed, seen);
  // A folder disappeared between its listing and its opening. Start again with the remaining folders.
  for (int again = 0; again < kMostLooks && absl::IsUnavailable(out.status()); ++again) {
    seen.clear();
    out = Find(folder, is_allowed, seen);
  }
  return out;
}

}  // namespace tandem
