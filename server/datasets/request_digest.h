#ifndef TANDEM_SERVER_DATASETS_REQUEST_DIGEST_H_
#define TANDEM_SERVER_DATASETS_REQUEST_DIGEST_H_

#include <string>

#include "tandem/v1/dataset_service.pb.h"

namespace tandem {

// By what a repetition of a request is recognised: the SHA-256 of what counts of it. Empty where that cannot
// be made.
std::string DigestOf(const v1::CreateDatasetRequest& request);

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_REQUEST_DIGEST_H_
