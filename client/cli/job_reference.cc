#include "client/cli/job_reference.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/spelling.h"
#include "proto/job_file/scalar_text.h"

namespace tandem::cli {

std::string JobId(absl::string_view name) { return std::string(absl::StripPrefix(name, "jobs/")); }

absl::StatusOr<v1::Job> FindJob(client::Client& client, absl::string_view reference) {
  std::string id = JobId(absl::StripSuffix(reference, "/"));
  const bool newest = absl::EndsWith(id, "@");
  if (newest) id.pop_back();
  bool valid = (newest || !id.empty()) && id.size() <= 128;
  for (const char c : id) valid = valid && (absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.');
  if (!valid) {
    return absl::InvalidArgumentError(absl::StrCat("cannot find the job ", Quoted(reference),
                                                   ": it is not a job's name; `tandem list` shows the jobs"));
  }
  if (!newest) {
    absl::StatusOr<v1::Job> job = client.GetJob("jobs/" + id);
    if (job.ok() || !absl::IsNotFound(job.status())) return job;
  }
  // The newest job is the first.
  absl::StatusOr<std::vector<v1::Job>> jobs = client.ListJobs({});
  if (!jobs.ok()) return jobs.status();
  std::vector<v1::Job> matches;
  std::vector<std::string> ids, matching_ids;
  for (v1::Job& candidate : *jobs) {
    ids.push_back(JobId(candidate.name()));
    if (!absl::StartsWith(ids.back(), id)) continue;
    matching_ids.push_back(ids.back());
    matches.push_back(std::move(candidate));
  }
  if (matches.size() == 1 || (newest && !matches.empty())) return std::move(matches[0]);
  if (matches.empty() && id.empty())
    return absl::NotFoundError("there are no jobs; `tandem submit` sends one");
  if (matches.empty()) {
    const std::string nearest = NearestName(id, ids);
    return absl::NotFoundError(absl::StrCat(
        "no job's id begins with `", id, "`; ",
        nearest.empty() ? "`tandem list` shows the jobs" : absl::StrCat("did you mean `", nearest, "`?")));
  }
  constexpr size_t kMostShown = 5;
  const size_t shown = std::min(matching_ids.size(), kMostShown);
  return absl::InvalidArgumentError(
      absl::StrCat(matches.size(), " jobs begin with `", id,
                   "`: ", absl::StrJoin(matching_ids.begin(), matching_ids.begin() + shown, ", "),
                   matching_ids.size() > kMostShown ? ", ..." : "", "; write more of the id, or `", id,
                   "@` for the newest"));
}

absl::StatusOr<v1::Job> FindJobToChange(client::Client& client, absl::string_view reference) {
  if (JobId(reference) == "@") {
    return absl::InvalidArgumentError(
        "cannot change the job \"@\": the newest of all jobs may be another user's; write the beginning of "
        "its "
        "id before the @");
  }
  return FindJob(client, reference);
}

}  // namespace tandem::cli
