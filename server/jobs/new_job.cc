#include "server/jobs/new_job.h"

#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/retry_delay.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// A queue gets shorter only as jobs end, so the delay is a guess.
constexpr absl::Duration kQueueDelay = absl::Seconds(30);

}  // namespace

std::string NewId(const std::string& name, absl::string_view otherwise) {
  constexpr char kBase32[] = "abcdefghijklmnopqrstuvwxyz234567";
  absl::BitGen random;
  std::string id = absl::StrCat(name.empty() ? otherwise : absl::string_view(name), "-");
  for (int i = 0; i < 6; ++i) id.push_back(kBase32[absl::Uniform(random, 0, 32)]);
  return id;
}

absl::Status CheckQueuedJobs(Transaction* transaction, const std::string& user, int added, int most) {
  if (most <= 0) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const int queued, transaction->CountJobs(user, v1::JOB_STATE_QUEUED));
  if (queued + added <= most) return absl::OkStatus();
  // Several jobs belong to a sweep.
  const absl::string_view what_to_do =
      added > most ? "make the sweep smaller, or ask an administrator for more"
                   : "wait until some start, cancel some, or ask an administrator for more";
  absl::Status refused = WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          added > 1 ? absl::StrCat("cannot queue the ", added, " jobs of the sweep") : "cannot queue the job",
          ": \"", user, "\" has ", queued, " of at most ", most,
          " queued jobs (--user-max-queued-jobs, or the token's max_queued_jobs); ", what_to_do)),
      "QUOTA_EXCEEDED");
  return added > most ? refused : WithRetryDelay(std::move(refused), kQueueDelay);
}

absl::Status CheckQueueLength(int64_t queued, int64_t added, int64_t most) {
  if (most <= 0) return absl::OkStatus();
  if (queued + added <= most) return absl::OkStatus();
  const std::string message = absl::StrCat(
      added > 1 ? absl::StrCat("cannot queue the ", added, " jobs of the sweep") : "cannot queue the job",
      ": the daemon's queue has ", queued, " of at most ", most, " jobs (--max-queued-jobs); ",
      added == 1      ? "try again later"
      : added <= most ? "make the sweep smaller, or try again later"
                      : "make the sweep smaller");
  absl::Status full = WithReason(absl::ResourceExhaustedError(message), "QUEUE_FULL");
  return added <= most ? WithRetryDelay(std::move(full), kQueueDelay) : full;
}

}  // namespace tandem
