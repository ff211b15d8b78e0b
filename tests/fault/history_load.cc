#include "tests/fault/history_load.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/integration/job_specs.h"

namespace tandem::testing {
namespace {

// The number of newest jobs that are usually chosen. Jobs that have not ended are among them.
constexpr size_t kNewest = 24;

}  // namespace

void KnownJobs::Add(Known job) {
  MutexLock lock(&mutex_);
  jobs_.push_back(std::move(job));
}

KnownJobs::Known KnownJobs::Pick(std::mt19937_64* random) const {
  MutexLock lock(&mutex_);
  if (jobs_.empty()) return {};
  const size_t newest = (*random)() % 5 == 0 ? jobs_.size() : std::min(kNewest, jobs_.size());
  return jobs_[jobs_.size() - 1 - (*random)() % newest];
}

size_t KnownJobs::count() const {
  MutexLock lock(&mutex_);
  return jobs_.size();
}

HistoryLoad::HistoryLoad(HistoryClient* client, HistoryRecorder* recorder, KnownJobs* jobs, int number,
                         uint64_t seed, size_t most_jobs)
    : client_(client),
      recorder_(recorder),
      jobs_(jobs),
      number_(number),
      most_jobs_(most_jobs),
      random_(seed) {}

void HistoryLoad::Run(absl::Duration until) {
  until_ = until;
  while (recorder_->Now() < until_) {
    Act();
    absl::SleepFor(absl::Milliseconds(Random(0, 60)));
  }
}

absl::Duration HistoryLoad::Deadline() {
  return Random(0, 7) == 0 ? absl::Milliseconds(Random(1, 30)) : absl::Seconds(10);
}

v1::JobSpec HistoryLoad::NewSpec(const std::string& name) {
  const auto seed = static_cast<uint64_t>(Random(1, 1000));
  v1::JobSpec spec;
  if (Random(0, 5) == 0) {
    // A second or so.
    spec = LongJob(100 * Random(1, 2));
    spec.mutable_training()->set_seed(seed);
  } else {
    spec = SmallJob({.epochs = Random(1, 2), .report_every_steps = Random(0, 2), .seed = seed});
  }
  spec.set_name(name);
  spec.set_max_restarts(Random(0, 2));
  return spec;
}

void HistoryLoad::Act() {
  const KnownJobs::Known known = jobs_->Pick(&random_);
  const int choice = Random(0, 99);
  if (known.job.empty() || choice < 14) return Submit();
  if (choice < 16) return SubmitWrong();
  if (choice < 20) return SubmitAgain(known);
  if (choice < 26) return List();
  if (choice < 44) return Watch(known.job);
  if (choice < 50) {
    client_->Cancel(known.job, Deadline());
  } else if (choice < 60) {
    client_->Pause(known.job, Deadline());
  } else if (choice < 72) {
    client_->Resume(known.job, Deadline());
  } else if (choice < 77) {
    client_->Delete(known.job, Deadline());
  } else {
    client_->Get(known.job, Deadline());
  }
}

void HistoryLoad::Submit() {
  if (jobs_->count() >= most_jobs_) return;
  const std::string request = absl::StrCat("r", number_, "-", ++requests_);
  const v1::JobSpec spec = NewSpec(request);
  while (recorder_->Now() < until_) {
    const Call call = client_->Create(spec, request, /*is_valid=*/true, Deadline());
    if (OutcomeOf(call) == Outcome::kDone) jobs_->Add({call.jobs.front().job, request, spec});
    if (OutcomeOf(call) != Outcome::kUnknown) return;
    absl::SleepFor(absl::Milliseconds(Random(0, 100)));
  }
}

void HistoryLoad::SubmitWrong() {
  const std::string request = absl::StrCat("r", number_, "-", ++requests_);
  v1::JobSpec spec = NewSpec(request);
  spec.mutable_training()->set_global_batch_size(-1);
  client_->Create(spec, request, /*is_valid=*/false, Deadline());
}

void HistoryLoad::SubmitAgain(const KnownJobs::Known& known) {
  v1::JobSpec spec = known.spec;
  if (Random(0, 1) == 0) {
    // Each request has its own name and its own spec. The seed makes each spec distinct.
    spec.set_name(absl::StrCat("r", number_, "-", ++requests_));
  }
  client_->Create(spec, known.request_id, /*is_valid=*/true, Deadline());
}

void HistoryLoad::List() {
  std::vector<v1::JobState> states;
  if (Random(0, 3) == 0) states = {v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED};
  client_->List(Random(3, 40), states, Deadline());
}

void HistoryLoad::Watch(const std::string& job) {
  int64_t after = Random(0, 2) == 0 ? Random(0, 6) : 0;
  for (int part = Random(1, 3); part > 0; --part) {
    const Call call = client_->Watch(job, after, absl::Milliseconds(Random(1, 700)));
    if (!call.events.empty()) after = call.events.back().event.sequence();
    if (OutcomeOf(call) != Outcome::kUnknown) return;
  }
}

}  // namespace tandem::testing
