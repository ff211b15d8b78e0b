#ifndef TANDEM_ENGINE_BASE_FIELD_VIOLATIONS_H_
#define TANDEM_ENGINE_BASE_FIELD_VIOLATIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// A wrong field of a request.
struct FieldViolation {
  std::string field;        // The path, such as "model.layers[2].dense.units".
  std::string description;  // The mistake, the value and how to mend it.

  bool operator==(const FieldViolation&) const = default;
};

// Gathers all mistakes in a request, so that a single error reports them all. Not thread-safe.
class FieldViolations {
 public:
  void Add(absl::string_view field, absl::string_view description);
  // Adds the violations of `status`, each path behind `prefix`. An error without violations becomes a
  // violation of the field `prefix`. OK adds nothing.
  void AddAll(absl::string_view prefix, const absl::Status& status);

  bool empty() const { return violations_.empty(); }
  const std::vector<FieldViolation>& violations() const { return violations_; }

  // Returns OK if no violation was added. Otherwise returns INVALID_ARGUMENT with a message that lists all
  // violations and a payload for GetFieldViolations.
  absl::Status ToStatus() const;

 private:
  std::vector<FieldViolation> violations_;
};

// Each adds a violation of `field` to `violations` if the number is wrong.
void CheckAboveZero(absl::string_view field, double value, FieldViolations& violations);    // And finite.
void CheckAtLeastZero(absl::string_view field, double value, FieldViolations& violations);  // And finite.
void CheckZeroToOne(absl::string_view field, double value, FieldViolations& violations);

// Returns INVALID_ARGUMENT with a single violation.
absl::Status FieldError(absl::string_view field, absl::string_view description);

// Returns `status` as FieldViolations::AddAll adds it: with `prefix` before each path. OK stays OK.
// RESOURCE_EXHAUSTED is returned unchanged: the memory was full, and the field may be right.
absl::Status UnderField(absl::string_view prefix, const absl::Status& status);

// Returns the violations of `status`, empty if it has none.
std::vector<FieldViolation> GetFieldViolations(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_FIELD_VIOLATIONS_H_
