#ifndef TANDEM_CLIENT_DASHBOARD_CALLS_H_
#define TANDEM_CLIENT_DASHBOARD_CALLS_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/lib/client.h"

namespace tandem::dashboard {

// A message in the JSON of Protocol Buffers, with the API's own field names; fields with default values are
// left out.
std::string ToJson(const google::protobuf::Message& message);

// Makes the unary call `method` ("GetJob") with a request in JSON, and returns the answer in JSON. NOT_FOUND:
// the page may make no such call. INVALID_ARGUMENT: the JSON is not the method's request. Other errors are
// the daemon's. Thread-safe.
absl::StatusOr<std::string> CallInJson(client::Client& client, absl::string_view method,
                                       const std::string& request);

// An error as the page expects it: {"code": "NOT_FOUND", "message": ..., "violations": [{"field",
// "description"}]}.
std::string ErrorInJson(const absl::Status& status);

// The status of HTTP that says the same.
int HttpStatus(const absl::Status& status);

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_CALLS_H_
