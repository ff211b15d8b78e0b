#ifndef TANDEM_SERVER_ADMISSION_FOLDER_LINKS_H_
#define TANDEM_SERVER_ADMISSION_FOLDER_LINKS_H_

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// The first symbolic link in the folder, at any depth, that leads to something for which `is_allowed` (of a
// canonical path) does not hold; nullopt where there is none. Links in `folder` itself that lead to folders
// are gone into, as readers of data do; deeper ones are not, as they do neither. Those that lead nowhere are
// no harm, nor is what this process has no permission to look into. INVALID_ARGUMENT: part of the folder
// could not be looked at, so that nobody knows; the message begins with the path of that part. UNAVAILABLE:
// likewise, as folders in it were removed again and again meanwhile.
absl::StatusOr<std::optional<std::string>> FindLinkOut(
    const std::filesystem::path& folder, const std::function<bool(const std::filesystem::path&)>& is_allowed);

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_FOLDER_LINKS_H_
