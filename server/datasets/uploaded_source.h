#ifndef TANDEM_SERVER_DATASETS_UPLOADED_SOURCE_H_
#define TANDEM_SERVER_DATASETS_UPLOADED_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Returns `spec` with each relative path of its source made absolute below `files_folder`, the folder of its
// upload. INVALID_ARGUMENT if no upload can have the path, or if an absolute path is below `uploads_folder`,
// the folder of all uploads.
absl::StatusOr<v1::DatasetSpec> AtUploadedFiles(v1::DatasetSpec spec, const std::string& uploads_folder,
                                                const std::string& files_folder);

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_UPLOADED_SOURCE_H_
