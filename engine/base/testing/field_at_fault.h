#ifndef TANDEM_ENGINE_BASE_TESTING_FIELD_AT_FAULT_H_
#define TANDEM_ENGINE_BASE_TESTING_FIELD_AT_FAULT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/field_violations.h"

namespace tandem {

// Returns the field of the only violation of `status`, and "" for OK. With several violations, returns their
// number. With none, returns the whole status as text.
inline std::string FieldAtFault(const absl::Status& status) {
  const std::vector<FieldViolation> violations = GetFieldViolations(status);
  if (violations.empty()) return status.ok() ? "" : status.ToString();
  return violations.size() == 1 ? violations[0].field : std::to_string(violations.size());
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_TESTING_FIELD_AT_FAULT_H_
