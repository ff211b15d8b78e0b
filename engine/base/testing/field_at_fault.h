#ifndef TANDEM_ENGINE_BASE_TESTING_FIELD_AT_FAULT_H_
#define TANDEM_ENGINE_BASE_TESTING_FIELD_AT_FAULT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/field_violations.h"
#include "gtest/gtest.h"

namespace tandem {

// Returns the field of the only violation of `status`, and "" for OK. With several violations, returns their
// number. With none, returns the whole status as text.
inline std::string FieldAtFault(const absl::Status& status) {
  const std::vector<FieldViolation> violations = GetFieldViolations(status);
  if (violations.empty()) return status.ok() ? "" : status.ToString();
  return violations.size() == 1 ? violations[0].field : std::to_string(violations.size());
}

// Expects that `status` has a single violation, of `field`, with `part` in its description.
inline void ExpectOneViolation(const absl::Status& status, const std::string& field,
                               const std::string& part) {
  const std::vector<FieldViolation> violations = GetFieldViolations(status);
  ASSERT_EQ(violations.size(), 1) << status;
  EXPECT_EQ(violations[0].field, field);
  EXPECT_NE(violations[0].description.find(part), std::string::npos) << violations[0].description;
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_TESTING_FIELD_AT_FAULT_H_
