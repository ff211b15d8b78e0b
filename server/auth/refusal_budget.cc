#include "server/auth/refusal_budget.h"

#include <algorithm>
#include <utility>

namespace tandem {

bool RefusalBudget::Take(const std::string& user, absl::Duration now) {
  const auto [found, is_new] = buckets_.try_emplace(user, Bucket{at_once_, now, 0});
  Bucket& bucket = found->second;
  bucket.level = std::min(at_once_, bucket.level + a_second_ * absl::ToDoubleSeconds(now - bucket.as_of));
  bucket.as_of = now;
  if (bucket.level < 1) {
    ++bucket.left_out;
    return false;
  }
  bucket.level -= 1;
  return true;
}

int64_t RefusalBudget::TakeLeftOut(const std::string& user) {
  const auto found = buckets_.find(user);
  return found == buckets_.end() ? 0 : std::exchange(found->second.left_out, 0);
}

std::map<std::string, int64_t> RefusalBudget::TakeAllLeftOut() {
  std::map<std::string, int64_t> all;
  for (auto& [user, bucket] : buckets_) {
    if (bucket.left_out > 0) all[user] = std::exchange(bucket.left_out, 0);
  }
  return all;
}

}  // namespace tandem
