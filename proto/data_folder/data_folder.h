#ifndef TANDEM_PROTO_DATA_FOLDER_DATA_FOLDER_H_
#define TANDEM_PROTO_DATA_FOLDER_DATA_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The rules for folders with data. Uploads, S3 folders and folders on the daemon's machine follow the same
// rules.

namespace tandem {

// Returns whether readers of data skip a file or folder with this name: hidden names, and the folders
// "@eaDir" (made by Synology's storage) and "__MACOSX" (made by Apple's archiver).
bool IsSkippedName(absl::string_view name);
// Returns whether a part of a relative path, separated by slashes, is a skipped name. "." is none.
bool IsSkippedPath(absl::string_view path);

// Passes each file and each folder in `folder`, at any depth, to `use`, without skipped names. Follows
// symbolic links to files and to folders. Skips links that lead nowhere, and files that are not plain. The
// order is undefined.
//
// INVALID_ARGUMENT: a folder cannot be read, a link leads back to a folder above it, or more than 10,000
// links lead to folders. The walk still passes the files that it found, then returns the first error.
absl::Status WalkDataFolder(const std::string& folder,
                            absl::FunctionRef<void(const std::filesystem::path& path, bool is_folder)> use);

// Returns whether the name of a file ends as a picture's name that can be read: ".jpg", ".WEBP". See
// ImageFolderSource.
bool IsPictureName(absl::string_view name);
// Returns whether a file begins as a picture in a format that can be read.
bool IsPictureContent(absl::string_view content);

// A part of a data set.
enum class DataPart : uint8_t { kNone, kTrain, kValidation, kTest };

// Returns the part that a folder's name means, in any case: "train", "Training"; "val", "valid",
// "validation", "dev"; "test", "testing".
DataPart PartOf(absl::string_view name);

// The names or paths of folders with the parts of a data set. Empty strings are missing parts.
struct DataParts {
  std::string train;
  std::string validation;
  std::string test;
};

// Returns the subfolders that are parts, if one is the training part, and if either another subfolder is a
// part or no other subfolder exists. Otherwise, returns no parts: "train" may be a class beside "bus" and
// "car". INVALID_ARGUMENT, with the name `folder`, if two subfolders are the same part.
absl::StatusOr<DataParts> FindDataParts(const std::string& folder,
                                        const std::vector<std::string>& subfolders);
// As above, for a folder on this machine. Returns paths. Returns no parts if the folder cannot be read.
absl::StatusOr<DataParts> FindDataParts(const std::string& folder);

// Returns whether a path or URL ends as the name of an archive with pictures: ".zip", ".tar", ".tar.gz",
// ".TGZ". The digest at the end of a URL does not count.
bool IsArchiveName(absl::string_view path);

}  // namespace tandem

#endif  // TANDEM_PROTO_DATA_FOLDER_DATA_FOLDER_H_
