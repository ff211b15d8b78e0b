#ifndef TANDEM_SERVER_STORE_REQUEST_OWNER_H_
#define TANDEM_SERVER_STORE_REQUEST_OWNER_H_

#include <string>

#include "absl/status/status.h"

namespace tandem {

// ALREADY_EXISTS (REQUEST_ID_USED) if `owner` used the request id and `user` is somebody else. Check this
// before anything else, because other errors name what the request created.
absl::Status CheckRequestOwner(const std::string& request_id, const std::string& owner,
                               const std::string& user);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_REQUEST_OWNER_H_
