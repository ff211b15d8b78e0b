#ifndef TANDEM_SERVER_CLUSTERS_SLURM_FAKE_SLURM_CLIENT_H_
#define TANDEM_SERVER_CLUSTERS_SLURM_FAKE_SLURM_CLIENT_H_

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/mutex.h"
#include "server/clusters/slurm/slurm_client.h"

namespace tandem {

// For tests: a cluster in memory. A submitted job is pending until the test changes it. Thread-safe.
class FakeSlurmClient : public SlurmClient {
 public:
  // A call of the client.
  enum class Call { kSubmit, kTest, kPoll, kFind, kCancel, kPartitions };
  // A SIGTERM or a cancellation that a job got.
  struct Cancelled {
    std::string id;
    bool signal_term = false;
    bool operator==(const Cancelled&) const = default;
  };

  // The next calls of this kind return these errors, one each.
  void FailNext(Call call, absl::Status error) {
    MutexLock lock(&mutex_);
    failures_.push_back({call, std::move(error)});
  }
  // The next Submit makes its job, but returns UNAVAILABLE.
  void LoseNextAnswer() {
    MutexLock lock(&mutex_);
    lose_next_answer_ = true;
  }
  // Changes a job. Does nothing if the job is not known.
  void Change(absl::string_view id, const std::function<void(SlurmJob&)>& change) {
    MutexLock lock(&mutex_);
    for (SlurmJob& job : jobs_) {
      if (job.id == id) change(job);
    }
  }
  void SetState(absl::string_view id, SlurmState state, std::string reason = "") {
    Change(id, [&](SlurmJob& job) {
      job.state = state;
      job.state_text = std::string(SlurmStateName(state));
      job.reason = reason;
    });
  }
  // Slurm forgets the job, as after MinJobAge.
  void Forget(absl::string_view id) {
    MutexLock lock(&mutex_);
    std::erase_if(jobs_, [&](const SlurmJob& job) { return job.id == id; });
  }
  // Adds a job that nobody submitted here.
  void Add(SlurmJob job) {
    MutexLock lock(&mutex_);
    jobs_.push_back(std::move(job));
  }
  void SetPartitions(std::vector<SlurmPartition> partitions) {
    MutexLock lock(&mutex_);
    partitions_ = std::move(partitions);
  }

  // All requests of Submit that made a job, in order. The first has the id "1".
  std::vector<SlurmRequest> submitted() const {
    MutexLock lock(&mutex_);
    return submitted_;
  }
  std::vector<Cancelled> cancelled() const {
    MutexLock lock(&mutex_);
    return cancelled_;
  }
  int polls() const {
    MutexLock lock(&mutex_);
    return polls_;
  }

  absl::StatusOr<std::string> Submit(const SlurmRequest& request) override {
    MutexLock lock(&mutex_);
    if (absl::Status failure = TakeFailure(Call::kSubmit); !failure.ok()) return failure;
    submitted_.push_back(request);
    SlurmJob job;
    job.id = absl::StrCat(submitted_.size());
    job.state = SlurmState::kPending;
    job.state_text = "PENDING";
    job.reason = "Resources";
    job.comment = request.comment;
    jobs_.push_back(job);
    if (std::exchange(lose_next_answer_, false)) return absl::UnavailableError("the answer is lost");
    return job.id;
  }

  absl::Status Test(const SlurmRequest&) override {
    MutexLock lock(&mutex_);
    return TakeFailure(Call::kTest);
  }

  absl::StatusOr<std::vector<SlurmJob>> Poll() override {
    MutexLock lock(&mutex_);
    ++polls_;
    if (absl::Status failure = TakeFailure(Call::kPoll); !failure.ok()) return failure;
    std::vector<SlurmJob> jobs;
    for (const SlurmJob& job : jobs_) {
      if (absl::StartsWith(job.comment, kSlurmCommentPrefix)) jobs.push_back(job);
    }
    return jobs;
  }

  absl::StatusOr<std::optional<SlurmJob>> Find(absl::string_view comment) override {
    MutexLock lock(&mutex_);
    if (absl::Status failure = TakeFailure(Call::kFind); !failure.ok()) return failure;
    std::optional<SlurmJob> found;
    for (const SlurmJob& job : jobs_) {
      if (job.comment != comment) continue;
      if (!found.has_value() || (IsEnd(found->state) && !IsEnd(job.state))) found = job;
    }
    return found;
  }

  absl::Status Cancel(absl::string_view id, bool signal_term) override {
    MutexLock lock(&mutex_);
    if (absl::Status failure = TakeFailure(Call::kCancel); !failure.ok()) return failure;
    cancelled_.push_back({std::string(id), signal_term});
    if (signal_term) return absl::OkStatus();
    for (SlurmJob& job : jobs_) {
      if (job.id != id || IsEnd(job.state)) continue;
      job.state = SlurmState::kCancelled;
      job.state_text = "CANCELLED";
      job.reason.clear();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<SlurmPartition>> Partitions() override {
    MutexLock lock(&mutex_);
    if (absl::Status failure = TakeFailure(Call::kPartitions); !failure.ok()) return failure;
    return partitions_;
  }

 private:
  struct Failure {
    Call call;
    absl::Status error;
  };

  // Returns and removes the next failure of this call; OK if none is set.
  absl::Status TakeFailure(Call call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (auto failure = failures_.begin(); failure != failures_.end(); ++failure) {
      if (failure->call != call) continue;
      absl::Status error = std::move(failure->error);
      failures_.erase(failure);
      return error;
    }
    return absl::OkStatus();
  }

  mutable Mutex mutex_;
  std::deque<Failure> failures_ ABSL_GUARDED_BY(mutex_);
  bool lose_next_answer_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<SlurmJob> jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<SlurmPartition> partitions_ ABSL_GUARDED_BY(mutex_);
  std::vector<SlurmRequest> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<Cancelled> cancelled_ ABSL_GUARDED_BY(mutex_);
  int polls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SLURM_FAKE_SLURM_CLIENT_H_
