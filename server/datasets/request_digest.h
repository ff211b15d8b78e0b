#ifndef TANDEM_SERVER_DATASETS_REQUEST_DIGEST_H_
#define TANDEM_SERVER_DATASETS_REQUEST_DIGEST_H_

#include <string>

#include "tandem/v1/dataset_service.pb.h"

namespace tandem {

// Returns the SHA-256 of the fields that identify a repeated request. Empty if the digest cannot be computed.
std::string DigestOf(const v1::CreateDatasetRequest& request);

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_REQUEST_DIGEST_H_
