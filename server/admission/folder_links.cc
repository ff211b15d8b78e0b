#include "server/admission/folder_links.h"

#include <system_error>

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> Find(const fs::path& folder,
                                const std::function<bool(const fs::path&)>& is_allowed, bool goes_in) {
  std::error_code error;
  // Readers of data cannot go into a folder without permission either; what comes after it they may read.
  for (fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_symlink(ignored)) continue;
    const fs::path target = fs::canonical(entry->path(), ignored);
    if (ignored) continue;
    if (!is_allowed(target)) return entry->path().string();
    if (goes_in && entry.depth() == 0 && fs::is_directory(target, ignored)) {
      std::optional<std::string> out = Find(target, is_allowed, /*goes_in=*/false);
      if (out.has_value()) return out;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> FindLinkOut(const fs::path& folder,
                                       const std::function<bool(const fs::path&)>& is_allowed) {
  return Find(folder, is_allowed, /*goes_in=*/true);
}

}  // namespace tandem
