#ifndef TANDEM_SERVER_DATASETS_UPLOAD_PATH_H_
#define TANDEM_SERVER_DATASETS_UPLOAD_PATH_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Whether a file of an upload may have this path, which is relative to the upload: it stays inside, and every
// file system takes it. Otherwise INVALID_ARGUMENT with what is wrong, such as "has the part '..'".
absl::Status CheckUploadPath(absl::string_view path);

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_UPLOAD_PATH_H_
