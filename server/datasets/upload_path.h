#ifndef TANDEM_SERVER_DATASETS_UPLOAD_PATH_H_
#define TANDEM_SERVER_DATASETS_UPLOAD_PATH_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Checks the relative path of a file in an upload: it must stay inside the upload and suit every file system.
// INVALID_ARGUMENT names the fault, such as "has the part '..'".
absl::Status CheckUploadPath(absl::string_view path);

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_UPLOAD_PATH_H_
