#include "server/store/records.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tandem {

std::string JobName(const std::string& id) { return absl::StrCat("jobs/", id); }

std::string JobId(const std::string& name) {
  absl::string_view id = name;
  if (!absl::ConsumePrefix(&id, "jobs/") || absl::StrContains(id, '/')) return "";
  return std::string(id);
}

std::string SweepName(const std::string& id) { return absl::StrCat("sweeps/", id); }

std::string SweepId(const std::string& name) {
  absl::string_view id = name;
  if (!absl::ConsumePrefix(&id, "sweeps/") || absl::StrContains(id, '/')) return "";
  return std::string(id);
}

std::string DatasetName(const std::string& id) { return absl::StrCat("datasets/", id); }

std::string DatasetId(const std::string& name_or_id) {
  return std::string(absl::StripPrefix(name_or_id, "datasets/"));
}

bool IsTerminal(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

bool IsAtRest(v1::JobState state) { return IsTerminal(state) || state == v1::JOB_STATE_PAUSED; }

bool IsHolding(v1::JobState state) { return state != v1::JOB_STATE_QUEUED && !IsAtRest(state); }

bool IsToStopForNow(v1::JobState state) {
  return state == v1::JOB_STATE_PAUSING || state == v1::JOB_STATE_PREEMPTING;
}

}  // namespace tandem
