#ifndef TANDEM_SERVER_SWEEPS_SWEEP_PRUNER_H_
#define TANDEM_SERVER_SWEEPS_SWEEP_PRUNER_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/job_observer.h"
#include "server/sweeps/median_rule.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Stops jobs of sweeps that are worse than the others (SweepPruning). All that it knows, it reads from the
// store: nothing is lost at a restart of the daemon. Thread-safe.
class SweepPruner final : public JobObserver {
 public:
  // `jobs` must outlive the pruner, and the pruner must outlive the store's writer.
  explicit SweepPruner(JobMachine* jobs) : jobs_(jobs), thread_([this] { Run(); }) {}
  // Calls Stop.
  ~SweepPruner() override;

  // Ends the thread soon, also if it reads long logs. Events that were not judged are dropped; the next
  // daemon judges the next epoch. Idempotent.
  void Stop();

  // JobObserver.
  void OnEvent(const v1::JobEvent& event) override;
  void OnMoved(const v1::Job& job) override;
  void OnDeleted(const v1::Job& job) override;

 private:
  // What happened to a job since the thread's last look.
  struct News {
    // The newest epoch, with its number and its best result.
    v1::EpochSummary epoch;
    // The state if the job has ended, otherwise unspecified.
    v1::JobState ended = v1::JOB_STATE_UNSPECIFIED;
    bool is_deleted = false;
    // The sweep's id, if the job has ended or was deleted. Empty for a job without a sweep.
    std::string sweep_id = {};

    bool IsEnd() const { return is_deleted || ended != v1::JOB_STATE_UNSPECIFIED; }
  };

  void Run();
  bool IsStopping();
  void TakeEpoch(const std::string& job_id, const News& news);
  // Takes the end or the deletion of a job.
  void TakeEnd(const std::string& job_id, const News& news);
  void Prune(const std::string& job_id, const std::string& why);
  // Returns the rule of a job's sweep; null if the sweep prunes no job.
  MedianRule* RuleOf(const std::string& job_id);
  // Returns a new rule with the curves of the sweep's SUCCEEDED jobs; null if the sweep prunes no job.
  absl::StatusOr<std::unique_ptr<MedianRule>> LoadRule(const std::string& sweep_id);
  // Adds a SUCCEEDED job's curve to the rule. A job with an unreadable log gets a warning and does not count.
  // CANCELLED: Stop was called.
  absl::Status AddCurve(const std::string& job_id, MedianRule* rule);
  // CANCELLED: Stop was called.
  absl::StatusOr<BestCurve> LoadCurve(const std::string& job_id);
  // Forgets the rules of sweeps of which no job trains, if there are many.
  void ForgetRules();

  JobMachine* const jobs_;

  Mutex mutex_;
  // Keyed by job id.
  std::map<std::string, News> news_ ABSL_GUARDED_BY(mutex_);
  // Jobs that the machine was told to prune. Until they end, their epochs are not judged again.
  std::set<std::string> pruned_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // For the thread. The sweep of each job that trains; empty for a job without a sweep.
  std::map<std::string, std::string> sweep_of_;
  // Null for a sweep that prunes no job.
  std::map<std::string, std::unique_ptr<MedianRule>> rules_;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SWEEPS_SWEEP_PRUNER_H_
