#ifndef TANDEM_SERVER_CLUSTERS_FAKE_LAUNCHER_H_
#define TANDEM_SERVER_CLUSTERS_FAKE_LAUNCHER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "server/clusters/launcher.h"

namespace tandem {

// For tests: a launcher without processes. An attempt waits until the test changes it. Thread-safe.
class FakeLauncher : public Launcher {
 public:
  // The next Submit starts the attempt, but returns UNAVAILABLE.
  void LoseNextAnswer() {
    MutexLock lock(&mutex_);
    lose_next_answer_ = true;
  }
  // The next Submit returns this error, and starts nothing.
  void RefuseNext(absl::Status error) {
    MutexLock lock(&mutex_);
    refusal_ = std::move(error);
  }
  // While set, Submit returns ABORTED.
  void SetFull(bool full) {
    MutexLock lock(&mutex_);
    full_ = full;
  }
  // While set, Observe, Cancel and TakeOver return UNAVAILABLE.
  void SetAway(bool away) {
    MutexLock lock(&mutex_);
    away_ = away;
  }
  // While set, Cancel returns OK, and does nothing.
  void SetDeaf(bool deaf) {
    MutexLock lock(&mutex_);
    deaf_ = deaf;
  }
  // The next Observe returns UNAVAILABLE.
  void FailNextObservation() {
    MutexLock lock(&mutex_);
    fail_next_observation_ = true;
  }
  // Changes an attempt. Does nothing if it is not known.
  void Change(const AttemptId& id, const std::function<void(LaunchedAttempt&)>& change) {
    MutexLock lock(&mutex_);
    if (const auto found = attempts_.find(id); found != attempts_.end()) change(found->second);
  }
  void Forget(const AttemptId& id) {
    MutexLock lock(&mutex_);
    attempts_.erase(id);
  }
  // Adds an attempt that this launcher did not start.
  void Add(LaunchedAttempt attempt) {
    MutexLock lock(&mutex_);
    const AttemptId id = attempt.id;
    attempts_[id] = std::move(attempt);
  }

  // All attempts that Submit started, in order.
  std::vector<LaunchRequest> submitted() const {
    MutexLock lock(&mutex_);
    return submitted_;
  }
  std::vector<AttemptId> cancelled() const {
    MutexLock lock(&mutex_);
    return cancelled_;
  }
  // The number of times that Submit returned ABORTED.
  int aborted() const {
    MutexLock lock(&mutex_);
    return aborted_;
  }
  int observations() const {
    MutexLock lock(&mutex_);
    return observations_;
  }

  std::string name() const override { return "the fake cluster"; }

  absl::StatusOr<LaunchedAttempt> Submit(const LaunchRequest& request) override {
    MutexLock lock(&mutex_);
    if (full_) {
      ++aborted_;
      return absl::AbortedError("too many jobs");
    }
    if (!refusal_.ok()) return std::exchange(refusal_, absl::OkStatus());
    submitted_.push_back(request);
    LaunchedAttempt attempt;
    attempt.id = {request.job.name().substr(5), request.job.attempt()};
    attempt.handle = absl::StrCat(submitted_.size());
    attempt.detail = "Resources";
    attempts_[attempt.id] = attempt;
    if (std::exchange(lose_next_answer_, false)) return absl::UnavailableError("the answer is lost");
    return attempt;
  }

  absl::StatusOr<std::vector<LaunchedAttempt>> Observe() override {
    MutexLock lock(&mutex_);
    ++observations_;
    if (std::exchange(fail_next_observation_, false) || away_) {
      return absl::UnavailableError("the cluster is away");
    }
    std::vector<LaunchedAttempt> attempts;
    for (const auto& [id, attempt] : attempts_) attempts.push_back(attempt);
    return attempts;
  }

  absl::Status Cancel(const LaunchedAttempt& attempt) override {
    MutexLock lock(&mutex_);
    if (away_) return absl::UnavailableError("the cluster is away");
    if (deaf_) return absl::OkStatus();
    cancelled_.push_back(attempt.id);
    const auto found = attempts_.find(attempt.id);
    if (found == attempts_.end() || found->second.state == LaunchedAttempt::State::kEnded) {
      return absl::OkStatus();
    }
    found->second.state = LaunchedAttempt::State::kEnded;
    found->second.reason = v1::STATE_REASON_CLUSTER_CANCELLED;
    found->second.detail = "CANCELLED";
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<LaunchedAttempt>> TakeOver(const AttemptId& id) override {
    MutexLock lock(&mutex_);
    if (away_) return absl::UnavailableError("the cluster is away");
    const auto found = attempts_.find(id);
    if (found == attempts_.end()) return std::nullopt;
    return found->second;
  }

  absl::Status Test(const v1::JobSpec&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<v1::ClusterPartition>> Partitions() override {
    return std::vector<v1::ClusterPartition>();
  }

 private:
  mutable Mutex mutex_;
  bool lose_next_answer_ ABSL_GUARDED_BY(mutex_) = false;
  bool fail_next_observation_ ABSL_GUARDED_BY(mutex_) = false;
  bool full_ ABSL_GUARDED_BY(mutex_) = false;
  int aborted_ ABSL_GUARDED_BY(mutex_) = 0;
  bool away_ ABSL_GUARDED_BY(mutex_) = false;
  bool deaf_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  std::map<AttemptId, LaunchedAttempt> attempts_ ABSL_GUARDED_BY(mutex_);
  std::vector<LaunchRequest> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<AttemptId> cancelled_ ABSL_GUARDED_BY(mutex_);
  int observations_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_FAKE_LAUNCHER_H_
