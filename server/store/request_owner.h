#ifndef TANDEM_SERVER_STORE_REQUEST_OWNER_H_
#define TANDEM_SERVER_STORE_REQUEST_OWNER_H_

#include <string>

#include "absl/status/status.h"

namespace tandem {

// ALREADY_EXISTS (REQUEST_ID_USED) where the request id was `owner`'s, and `user` is another one: to be asked
// before anything else is compared, as other errors name what was made.
absl::Status CheckRequestOwner(const std::string& request_id, const std::string& owner,
                               const std::string& user);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_REQUEST_OWNER_H_
