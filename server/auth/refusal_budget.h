#ifndef TANDEM_SERVER_AUTH_REFUSAL_BUDGET_H_
#define TANDEM_SERVER_AUTH_REFUSAL_BUDGET_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace tandem {

// How many refused calls of each user are written down, so that whoever is refused all the time can neither
// fill the disk nor push out what others did: some at once, then so many a second. Those that are not are
// counted. Not thread-safe.
class RefusalBudget {
 public:
  RefusalBudget(double at_once, double a_second) : at_once_(at_once), a_second_(a_second) {}

  // Whether one more of this user ("": nobody knows whose) is written down. `now` is of a clock that never
  // jumps.
  bool Take(const std::string& user, absl::Duration now);
  // How many were not since it was last asked.
  int64_t TakeLeftOut(const std::string& user);
  // The users of whom some were not.
  std::map<std::string, int64_t> TakeAllLeftOut();

 private:
  struct Bucket {
    double level = 0;
    absl::Duration as_of;
    int64_t left_out = 0;
  };

  const double at_once_;
  const double a_second_;
  // One for each user that there has been.
  std::map<std::string, Bucket> buckets_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_REFUSAL_BUDGET_H_
