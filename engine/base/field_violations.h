#ifndef TANDEM_ENGINE_BASE_FIELD_VIOLATIONS_H_
#define TANDEM_ENGINE_BASE_FIELD_VIOLATIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// One field of a request that is wrong.
struct FieldViolation {
  std::string field;        // The path, such as "model.layers[2].dense.units".
  std::string description;  // What is wrong, with the value, and what to do.

  bool operator==(const FieldViolation&) const = default;
};

// Gathers what is wrong with a request, so that its sender hears of everything at once. Not thread-safe.
class FieldViolations {
 public:
  void Add(absl::string_view field, absl::string_view description);
  // Takes over those that `status` carries, each path behind `prefix`; a status without any becomes one
  // violation of the field `prefix`. OK adds nothing.
  void AddAll(absl::string_view prefix, const absl::Status& status);

  bool empty() const { return violations_.empty(); }
  const std::vector<FieldViolation>& violations() const { return violations_; }

  // OK where there are none, else INVALID_ARGUMENT with a message that lists them and a payload from which
  // GetFieldViolations reads them again.
  absl::Status ToStatus() const;

 private:
  std::vector<FieldViolation> violations_;
};

// INVALID_ARGUMENT for one field.
absl::Status FieldError(absl::string_view field, absl::string_view description);

// The violations that a status carries; empty for any other status.
std::vector<FieldViolation> GetFieldViolations(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_FIELD_VIOLATIONS_H_
