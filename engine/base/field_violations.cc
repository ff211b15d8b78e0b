#include "engine/base/field_violations.h"

#include <cmath>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"

namespace tandem {
namespace {

constexpr absl::string_view kPayloadUrl = "tandem/field-violations";
// ASCII's own separators. No path or sentence contains them.
constexpr char kRecordSeparator = '\x1e';
constexpr char kUnitSeparator = '\x1f';

}  // namespace

void FieldViolations::Add(absl::string_view field, absl::string_view description) {
  violations_.push_back({std::string(field), std::string(description)});
}

void FieldViolations::AddAll(absl::string_view prefix, const absl::Status& status) {
  if (status.ok()) return;
  std::vector<FieldViolation> inner = GetFieldViolations(status);
  if (inner.empty()) {
    Add(prefix, status.message());
    return;
  }
  for (FieldViolation& violation : inner) {
    const bool joined = prefix.empty() || violation.field.empty() || violation.field.front() == '[';
    Add(absl::StrCat(prefix, joined ? "" : ".", violation.field), violation.description);
  }
}

absl::Status FieldViolations::ToStatus() const {
  if (violations_.empty()) return absl::OkStatus();
  absl::Status status = absl::InvalidArgumentError(
      absl::StrJoin(violations_, "; ", [](std::string* out, const FieldViolation& v) {
        absl::StrAppend(out, v.field, v.field.empty() ? "" : ": ", v.description);
      }));
  status.SetPayload(kPayloadUrl, absl::Cord(absl::StrJoin(violations_, std::string(1, kRecordSeparator),
                                                          [](std::string* out, const FieldViolation& v) {
                                                            out->append(v.field);
                                                            out->push_back(kUnitSeparator);
                                                            out->append(v.description);
                                                          })));
  return status;
}

void CheckAboveZero(absl::string_view field, double value, FieldViolations& violations) {
  if (value > 0 && std::isfinite(value)) return;
  violations.Add(field, absl::StrCat("is ", value, "; it must be finite and above 0"));
}

void CheckAtLeastZero(absl::string_view field, double value, FieldViolations& violations) {
  if (value >= 0 && std::isfinite(value)) return;
  violations.Add(field, absl::StrCat("is ", value, "; it must be finite and at least 0"));
}

void CheckZeroToOne(absl::string_view field, double value, FieldViolations& violations) {
  if (value >= 0 && value <= 1) return;
  violations.Add(field, absl::StrCat("is ", value, "; it must be from 0 to 1"));
}

absl::Status FieldError(absl::string_view field, absl::string_view description) {
  FieldViolations violations;
  violations.Add(field, description);
  return violations.ToStatus();
}

absl::Status UnderField(absl::string_view prefix, const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) return status;
  FieldViolations violations;
  violations.AddAll(prefix, status);
  return violations.ToStatus();
}

std::vector<FieldViolation> GetFieldViolations(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return violations;
  const std::string text(*payload);
  for (absl::string_view record : absl::StrSplit(text, kRecordSeparator)) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(record, absl::MaxSplits(kUnitSeparator, 1));
    violations.push_back({std::string(parts.first), std::string(parts.second)});
  }
  return violations;
}

}  // namespace tandem
