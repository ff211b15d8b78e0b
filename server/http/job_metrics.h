#ifndef TANDEM_SERVER_HTTP_JOB_METRICS_H_
#define TANDEM_SERVER_HTTP_JOB_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/http/metrics.h"
#include "server/jobs/job_observer.h"

namespace tandem {

// Prometheus's metrics of jobs. Series with the label "job" exist only while the job holds devices, so their
// number is bounded by the devices. Thread-safe.
class JobMetrics : public JobObserver {
 public:
  // `metrics` must outlive this object.
  explicit JobMetrics(Metrics* metrics);

  // Sets the initial values: the number of jobs in each state, and the jobs that have not ended.
  void Restore(const std::map<v1::JobState, int64_t>& counts, const std::vector<v1::Job>& jobs);

  // JobObserver.
  void OnMoved(const v1::Job& job) override;
  void OnEvent(const v1::JobEvent& event) override;
  void OnDeleted(const v1::Job& job) override;

 private:
  using Gauge = prometheus::Gauge;
  using Counter = prometheus::Counter;

  // The series of a job that holds devices. Null until the first value.
  struct Running {
    Gauge* images_per_second = nullptr;
    Gauge* progress = nullptr;
    Gauge* last_report = nullptr;
    Gauge* data_wait = nullptr;
    Gauge* all_reduce = nullptr;
  };

  void OnStateChange(const std::string& id, const v1::JobEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnProgressReport(const std::string& id, const v1::JobEvent& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnEpoch(const std::string& id, const v1::EpochSummary& epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the job's series.
  void Forget(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountState(v1::JobState state, double by);
  // Sets the job's gauge in a family. Creates the gauge if null.
  static void Set(prometheus::Family<Gauge>& family, const std::string& id, double value, Gauge** gauge);

  prometheus::Family<Gauge>& jobs_;
  Counter& created_;
  prometheus::Family<Counter>& ended_;
  prometheus::Histogram& queue_wait_;
  prometheus::Family<Gauge>& job_images_per_second_;
  prometheus::Family<Gauge>& job_progress_;
  prometheus::Family<Gauge>& job_last_report_;
  prometheus::Family<Gauge>& job_data_wait_;
  prometheus::Family<Gauge>& job_all_reduce_;
  Gauge& images_per_second_;
  Counter& images_;
  Counter& training_seconds_;
  Counter& data_wait_seconds_;
  Counter& all_reduce_seconds_;
  Counter& checkpoints_;
  prometheus::Histogram& checkpoint_seconds_;
  Counter& worker_losses_;
  Counter& restarts_;
  Counter& preemptions_;

  Mutex mutex_;
  // Keyed by the job's id.
  absl::flat_hash_map<std::string, absl::Time> queued_since_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Running> running_ ABSL_GUARDED_BY(mutex_);
};

// Returns the short name of an enum's value: "worker_lost" for STATE_REASON_WORKER_LOST with the prefix
// "STATE_REASON_".
std::string LabelOf(absl::string_view name, absl::string_view prefix);

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_JOB_METRICS_H_
