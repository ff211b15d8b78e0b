#ifndef TANDEM_SERVER_FETCH_S3_CONFIG_H_
#define TANDEM_SERVER_FETCH_S3_CONFIG_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// The address of S3 and the credentials.
struct S3Config {
  std::string access_key;  // Empty: requests are not signed, for public buckets.
  std::string secret_key;
  std::string session_token;
  std::string region = "us-east-1";
  // "https://host:port" of a compatible server. Empty: Amazon's.
  std::string endpoint;
};

// Returns a variable of the environment; nullopt if unset or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
// Reads this process's environment.
std::optional<std::string> ProcessEnvironment(const std::string& name);

// Reads the settings of the AWS tools. First the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION, and AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL. Then, for
// missing settings, the profile AWS_PROFILE ("default") in AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials)
// and AWS_CONFIG_FILE (~/.aws/config). FAILED_PRECONDITION: the profile does not exist, or a key has no
// secret; the message names the remedy.
absl::StatusOr<S3Config> ReadS3Config(const Environment& environment);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_S3_CONFIG_H_
