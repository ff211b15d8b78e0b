#include "server/rpc/grpc_status.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/retry_delay.h"
#include "engine/base/utf8.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace tandem {
namespace {

// All parts together, in Base64 with the other trailers, stay below 8 KiB. The message's bytes are those on
// the wire; see EncodedBytes.
constexpr size_t kMaxMessageBytes = 1800;
constexpr size_t kMaxViolationsBytes = 3300;
constexpr size_t kMaxDescriptionBytes = 800;

// Cuts `text` at the end of a UTF-8 character.
std::string Cut(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t end = max_bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

// Returns the bytes of a text in the trailer "grpc-message". gRPC writes each byte that is not printable
// ASCII, and each '%', as %XX.
size_t EncodedBytes(absl::string_view text) {
  size_t bytes = 0;
  for (const char c : text) bytes += c >= ' ' && c <= '~' && c != '%' ? 1 : 3;
  return bytes;
}

// Cuts a message as Cut, so that it has at most kMaxMessageBytes on the wire.
std::string CutMessage(absl::string_view text) {
  if (EncodedBytes(text) <= kMaxMessageBytes) return std::string(text);
  size_t end = 0, bytes = 3;
  while ((bytes += EncodedBytes(text.substr(end, 1))) <= kMaxMessageBytes) ++end;
  return Cut(text, end + 3);
}

google::rpc::BadRequest ToBadRequest(const std::vector<FieldViolation>& violations) {
  google::rpc::BadRequest bad_request;
  size_t bytes = 0;
  for (size_t i = 0; i < violations.size(); ++i) {
    const std::string field = Cut(ToUtf8(violations[i].field), 300);
    const std::string description = Cut(ToUtf8(violations[i].description), kMaxDescriptionBytes);
    bytes += field.size() + description.size() + 8;
    auto* violation = bad_request.add_field_violations();
    if (i > 0 && bytes > kMaxViolationsBytes) {
      violation->set_description(absl::StrCat("and ", violations.size() - i, " more problems"));
      break;
    }
    violation->set_field(field);
    violation->set_description(description);
  }
  return bad_request;
}

std::string MessageOf(const absl::Status& status, const google::rpc::BadRequest& bad_request,
                      size_t problems) {
  // Names and contents of files may have any bytes, but clients accept only UTF-8.
  if (problems < 2) return CutMessage(ToUtf8(status.message()));
  std::string message = absl::StrCat(problems, " problems");
  const char* separator = ": ";
  for (const auto& violation : bad_request.field_violations()) {
    std::string item = absl::StrCat(separator, violation.field(), violation.field().empty() ? "" : ": ",
                                    violation.description());
    if (EncodedBytes(message) + EncodedBytes(item) > kMaxMessageBytes) {
      absl::StrAppend(&message, "; ...");
      break;
    }
    message += item;
    separator = "; ";
  }
  return message;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::vector<FieldViolation> violations = GetFieldViolations(status);
  const google::rpc::BadRequest bad_request = ToBadRequest(violations);

  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  google::rpc::ErrorInfo info;
  const std::string reason = GetReason(status);
  info.set_reason(reason.empty() ? absl::StatusCodeToString(status.code()) : reason);
  info.set_domain("tandem");
  for (const auto& [key, value] : GetReasonDetails(status)) (*info.mutable_metadata())[key] = value;
  details.add_details()->PackFrom(info);
  if (!violations.empty()) details.add_details()->PackFrom(bad_request);
  if (const absl::optional<absl::Duration> delay = GetRetryDelay(status); delay.has_value()) {
    google::rpc::RetryInfo retry;
    const int64_t milliseconds = absl::ToInt64Milliseconds(*delay);
    retry.mutable_retry_delay()->set_seconds(milliseconds / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(milliseconds % 1000) * 1'000'000);
    details.add_details()->PackFrom(retry);
  }
  const std::string message = MessageOf(status, bad_request, violations.size());
  // A short copy suffices: the status's own message has the whole text.
  details.set_message(Cut(message, 200));
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message, details.SerializeAsString());
}

}  // namespace tandem
