#ifndef TANDEM_SERVER_AUTH_REFUSAL_BUDGET_H_
#define TANDEM_SERVER_AUTH_REFUSAL_BUDGET_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace tandem {

// Bounds the refused calls of each user that the audit log records: some at once, then a number per second.
// So a user who keeps getting refused cannot fill the disk or push out other records. Counts the calls beyond
// the budget. Not thread-safe.
class RefusalBudget {
 public:
  RefusalBudget(double at_once, double a_second) : at_once_(at_once), a_second_(a_second) {}

  // Returns true if one more refused call of this user may be recorded. "" stands for all unknown users.
  // `now` must come from a monotonic clock.
  bool Take(const std::string& user, absl::Duration now);
  // Returns and resets the user's number of calls beyond the budget.
  int64_t TakeLeftOut(const std::string& user);
  // The same for all users with such calls.
  std::map<std::string, int64_t> TakeAllLeftOut();

 private:
  struct Bucket {
    double level = 0;
    absl::Duration as_of;
    int64_t left_out = 0;
  };

  const double at_once_;
  const double a_second_;
  // Keyed by user. Never shrinks.
  std::map<std::string, Bucket> buckets_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_REFUSAL_BUDGET_H_
