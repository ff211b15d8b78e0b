#include "server/fetch/s3_config.h"

#include <cstdlib>
#include <fstream>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

using Section = std::map<std::string, std::string>;

// Returns the entries of `[section]` in a file of the AWS tools; nullopt if no such section exists. Ignores
// indented lines, which belong to the entry above them.
std::optional<Section> ReadSection(const std::string& path, const std::string& section) {
  std::ifstream file(path);
  std::optional<Section> found;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (text.front() == '[') {
      const std::string name(absl::StripAsciiWhitespace(text.substr(1, text.find(']') - 1)));
      inside = name == section;
      if (inside && !found.has_value()) found.emplace();
      continue;
    }
    const size_t equals = text.find('=');
    if (!inside || absl::ascii_isspace(line.front()) || equals == absl::string_view::npos) continue;
    const std::string key = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text.substr(0, equals)));
    (*found)[key] = std::string(absl::StripAsciiWhitespace(text.substr(equals + 1)));
  }
  return found;
}

}  // namespace

std::optional<std::string> ProcessEnvironment(const std::string& name) {
  const char* value = getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

absl::StatusOr<S3Config> ReadS3Config(const Environment& environment) {
  const std::string home = environment("HOME").value_or("");
  const std::string profile = environment("AWS_PROFILE").value_or("default");
  const std::string credentials_file =
      environment("AWS_SHARED_CREDENTIALS_FILE").value_or(home + "/.aws/credentials");
  const std::string config_file = environment("AWS_CONFIG_FILE").value_or(home + "/.aws/config");
  const std::optional<Section> credentials = ReadSection(credentials_file, profile);
  const std::optional<Section> config =
      ReadSection(config_file, profile == "default" ? profile : absl::StrCat("profile ", profile));
  if (environment("AWS_PROFILE").has_value() && !credentials.has_value() && !config.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot use AWS_PROFILE '", profile, "': neither ", credentials_file, " nor ",
                     config_file, " has that profile; mend the name, or add the profile"));
  }
  const auto in_files = [&](const std::string& key) -> std::string {
    for (const std::optional<Section>* section : {&credentials, &config}) {
      if (!section->has_value()) continue;
      const auto found = (*section)->find(key);
      if (found != (*section)->end()) return found->second;
    }
    return "";
  };

  S3Config s3;
  if (const auto key = environment("AWS_ACCESS_KEY_ID"); key.has_value()) {
    // Take all three values from the same place.
    s3.access_key = *key;
    s3.secret_key = environment("AWS_SECRET_ACCESS_KEY").value_or("");
    s3.session_token = environment("AWS_SESSION_TOKEN").value_or("");
  } else {
    s3.access_key = in_files("aws_access_key_id");
    s3.secret_key = in_files("aws_secret_access_key");
    s3.session_token = in_files("aws_session_token");
  }
  if (s3.access_key.empty() != s3.secret_key.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot use its S3 credentials: the ", s3.access_key.empty() ? "id" : "secret",
                     " of the access key is missing; set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"));
  }
  std::string region = environment("AWS_REGION").value_or(environment("AWS_DEFAULT_REGION").value_or(""));
  if (region.empty()) region = in_files("region");
  if (!region.empty()) s3.region = region;
  s3.endpoint = environment("AWS_ENDPOINT_URL_S3").value_or(environment("AWS_ENDPOINT_URL").value_or(""));
  if (s3.endpoint.empty()) s3.endpoint = in_files("endpoint_url");
  s3.endpoint = std::string(absl::StripSuffix(s3.endpoint, "/"));
  if (!s3.endpoint.empty() && !absl::StartsWith(s3.endpoint, "http://") &&
      !absl::StartsWith(s3.endpoint, "https://")) {
    return absl::FailedPreconditionError(absl::StrCat("cannot use AWS_ENDPOINT_URL '", s3.endpoint,
                                                      "': it must be http://... or https://..."));
  }
  return s3;
}

}  // namespace tandem
