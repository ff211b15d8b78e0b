#include "server/datasets/dataset_request.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

constexpr size_t kMaxId = 63;
constexpr size_t kMaxDescription = 1000;
constexpr size_t kMaxRequestId = 128;
constexpr size_t kMaxSpecBytes = 1 << 20;
constexpr size_t kMaxRequestBytes = 2 << 20;

bool IsId(const std::string& id) {
  return !id.empty() && id.size() <= kMaxId && absl::ascii_islower(id.front()) &&
         (absl::ascii_islower(id.back()) || absl::ascii_isdigit(id.back())) &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '_' || c == '.';
         });
}

// Refuses fields that belong to a job that names the set.
void CheckBelongsToSets(const v1::DatasetSpec& spec, FieldViolations& violations) {
  const auto job = [&](const char* field) {
    violations.Add(absl::StrCat("dataset.spec.", field),
                   "belongs to the jobs that name the set; leave it out");
  };
  if (spec.train_limit() != 0) job("train_limit");
  if (spec.validation_limit() != 0) job("validation_limit");
  if (spec.augmentation_size() > 0) job("augmentation");
}

}  // namespace

absl::Status CheckDatasetRequest(const v1::CreateDatasetRequest& request) {
  const v1::DatasetSpec& spec = request.dataset().spec();
  if (const size_t bytes = spec.ByteSizeLong(); bytes > kMaxSpecBytes) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("dataset.spec: has ", bytes, " bytes; at most ",
                                                  kMaxSpecBytes, " are accepted (1 MiB)")),
        "SPEC_TOO_LARGE");
  }
  // Bound the whole request: unknown fields are also read and compared.
  if (const size_t bytes = request.ByteSizeLong(); bytes > kMaxRequestBytes) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("dataset: the request has ", bytes, " bytes; at most ",
                                                  kMaxRequestBytes, " are accepted (2 MiB)")),
        "SPEC_TOO_LARGE");
  }
  FieldViolations violations;
  const std::string& id = request.dataset_id();
  if (!IsId(id)) {
    violations.Add(
        "dataset_id",
        absl::StrCat(
            id.empty() ? "is required" : absl::StrCat("is '", absl::CHexEscape(id.substr(0, 100)), "'"),
            "; a name is up to ", kMaxId,
            " small letters, digits, hyphens, underscores and dots, the first a letter, the "
            "last a letter or digit"));
  }
  const std::string& description = request.dataset().description();
  if (description.size() > kMaxDescription) {
    violations.Add("dataset.description", absl::StrCat("has ", description.size(), " bytes; at most ",
                                                       kMaxDescription, " are allowed"));
  }
  if (std::any_of(description.begin(), description.end(), [](char c) { return absl::ascii_iscntrl(c); })) {
    violations.Add("dataset.description", "has control characters, such as a line break");
  }
  const std::string& request_id = request.request_id();
  if (request_id.size() > kMaxRequestId ||
      !std::all_of(request_id.begin(), request_id.end(), [](char c) { return absl::ascii_isprint(c); })) {
    violations.Add("request_id",
                   absl::StrCat("must be at most ", kMaxRequestId, " printable ASCII characters"));
  }
  if (!request.upload().empty() && !absl::StartsWith(request.upload(), "uploads/")) {
    violations.Add("upload", absl::StrCat("is '", absl::CHexEscape(request.upload().substr(0, 100)),
                                          "', not \"uploads/<id>\""));
  }
  if (!spec.name().empty()) {
    violations.Add("dataset.spec.name", "names another data set; give a source, such as csv or image_folder");
  } else if (spec.source_case() == v1::DatasetSpec::SOURCE_NOT_SET) {
    violations.Add("dataset.spec", "needs a source, such as csv or image_folder");
  }
  CheckBelongsToSets(spec, violations);
  return violations.ToStatus();
}

}  // namespace tandem
