#ifndef TANDEM_CLIENT_DASHBOARD_CALLS_H_
#define TANDEM_CLIENT_DASHBOARD_CALLS_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/lib/client.h"

namespace tandem::dashboard {

// Returns a message as JSON with the API's field names, without fields that have their default.
std::string ToJson(const google::protobuf::Message& message);

// Makes the unary call `method` ("GetJob") with a request in JSON, and returns the response in JSON.
// NOT_FOUND if the page may not make this call. INVALID_ARGUMENT if the JSON is not a request of the method.
// Other errors are the daemon's. Thread-safe.
absl::StatusOr<std::string> CallInJson(client::Client& client, absl::string_view method,
                                       const std::string& request);

// Returns an error in the page's form: {"code": "NOT_FOUND", "message": ..., "violations": [{"field",
// "description"}]}.
std::string ErrorInJson(const absl::Status& status);

// Returns the HTTP status for an error.
int HttpStatus(const absl::Status& status);

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_CALLS_H_
