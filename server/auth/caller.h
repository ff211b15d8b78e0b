#ifndef TANDEM_SERVER_AUTH_CALLER_H_
#define TANDEM_SERVER_AUTH_CALLER_H_

#include <cstdint>
#include <string>

#include "tandem/v1/token.pb.h"

namespace tandem {

// The user who makes a call.
struct Caller {
  std::string user;
  // Never unspecified.
  v1::TokenRole role = v1::TOKEN_ROLE_SUBMITTER;
  // The number of the user's token in TokenRegistry. 0: the daemon's own token.
  int64_t token_number = 0;

  // An administrator may do everything.
  bool is_admin() const { return role == v1::TOKEN_ROLE_ADMIN; }
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_CALLER_H_
