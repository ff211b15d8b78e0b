#include "client/lib/status_details.h"

#include <optional>

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace tandem::client {
namespace {

constexpr char kTypeUrlPrefix[] = "type.googleapis.com/";

template <typename Detail>
std::optional<Detail> FindDetail(const absl::Status& status) {
  const absl::optional<absl::Cord> payload =
      status.GetPayload(kTypeUrlPrefix + std::string(Detail::descriptor()->full_name()));
  Detail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

}  // namespace

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : details.details()) {
      result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
    }
  }
  return result;
}

std::vector<FieldViolation> FieldViolations(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  if (const auto bad_request = FindDetail<google::rpc::BadRequest>(status)) {
    for (const auto& violation : bad_request->field_violations()) {
      violations.push_back({violation.field(), violation.description()});
    }
  }
  return violations;
}

std::string ErrorReason(const absl::Status& status) {
  const auto info = FindDetail<google::rpc::ErrorInfo>(status);
  return info.has_value() ? info->reason() : "";
}

std::map<std::string, std::string> ErrorMetadata(const absl::Status& status) {
  const auto info = FindDetail<google::rpc::ErrorInfo>(status);
  if (!info.has_value()) return {};
  return {info->metadata().begin(), info->metadata().end()};
}

absl::optional<absl::Duration> ShortRetryDelay(const absl::Status& status) {
  constexpr absl::Duration kLongest = absl::Seconds(10);
  if (!absl::IsResourceExhausted(status)) return absl::nullopt;
  const auto retry = FindDetail<google::rpc::RetryInfo>(status);
  if (!retry.has_value()) return absl::nullopt;
  const absl::Duration delay =
      absl::Seconds(retry->retry_delay().seconds()) + absl::Nanoseconds(retry->retry_delay().nanos());
  if (delay <= absl::ZeroDuration() || delay > kLongest) return absl::nullopt;
  return delay;
}

}  // namespace tandem::client
