#ifndef TANDEM_SERVER_FETCH_S3_CONFIG_H_
#define TANDEM_SERVER_FETCH_S3_CONFIG_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// How to reach S3, and as whom.
struct S3Config {
  std::string access_key;  // Empty: requests are not signed, for buckets that everybody may read.
  std::string secret_key;
  std::string session_token;
  std::string region = "us-east-1";
  // "https://host:port" of a server that speaks S3; empty: Amazon's.
  std::string endpoint;
};

// A variable of the environment; none where it is unset or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
// That of this process.
std::optional<std::string> ProcessEnvironment(const std::string& name);

// Reads what the AWS tools read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION or
// AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL; what is not there, from the profile
// AWS_PROFILE
// ("default") in AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and AWS_CONFIG_FILE (~/.aws/config).
// FAILED_PRECONDITION, in words that say what to mend: a profile that is not there, a key without its secret.
absl::StatusOr<S3Config> ReadS3Config(const Environment& environment);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_S3_CONFIG_H_
