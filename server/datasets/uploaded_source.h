#ifndef TANDEM_SERVER_DATASETS_UPLOADED_SOURCE_H_
#define TANDEM_SERVER_DATASETS_UPLOADED_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// `spec` with the relative paths of its source made absolute, below `files_folder`, where the files of its
// upload are. INVALID_ARGUMENT for those that no upload can have, and for absolute ones below
// `uploads_folder`, where those of all uploads are.
absl::StatusOr<v1::DatasetSpec> AtUploadedFiles(v1::DatasetSpec spec, const std::string& uploads_folder,
                                                const std::string& files_folder);

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_UPLOADED_SOURCE_H_
