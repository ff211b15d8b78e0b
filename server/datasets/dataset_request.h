#ifndef TANDEM_SERVER_DATASETS_DATASET_REQUEST_H_
#define TANDEM_SERVER_DATASETS_DATASET_REQUEST_H_

#include "absl/status/status.h"
#include "tandem/v1/dataset_service.pb.h"

namespace tandem {

// Checks a request without reading files. INVALID_ARGUMENT names the wrong fields. RESOURCE_EXHAUSTED: the
// request or its spec is too large.
absl::Status CheckDatasetRequest(const v1::CreateDatasetRequest& request);

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_DATASET_REQUEST_H_
