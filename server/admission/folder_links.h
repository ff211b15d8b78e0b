#ifndef TANDEM_SERVER_ADMISSION_FOLDER_LINKS_H_
#define TANDEM_SERVER_ADMISSION_FOLDER_LINKS_H_

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// Returns the first symbolic link in the folder, at any depth, whose canonical target fails `is_allowed`;
// nullopt if none. Like readers of data, follows links to folders. Ignores links that lead nowhere and
// folders without permission.
//
// INVALID_ARGUMENT: part of the folder could not be checked; the message begins with the path of that part.
// UNAVAILABLE: other processes kept removing folders during the check.
absl::StatusOr<std::optional<std::string>> FindLinkOut(
    const std::filesystem::path& folder, const std::function<bool(const std::filesystem::path&)>& is_allowed);

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_FOLDER_LINKS_H_
