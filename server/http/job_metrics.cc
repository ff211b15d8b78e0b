#include "server/http/job_metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "server/store/records.h"
#include "server/store/timestamps.h"

namespace tandem {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Family;

Family<prometheus::Gauge>& Gauges(Metrics* metrics, const char* name, const char* help) {
  return BuildGauge().Name(name).Help(help).Register(metrics->registry());
}

Family<prometheus::Counter>& Counters(Metrics* metrics, const char* name, const char* help) {
  return BuildCounter().Name(name).Help(help).Register(metrics->registry());
}

prometheus::Histogram& NewHistogram(Metrics* metrics, const char* name, const char* help,
                                    const std::vector<double>& buckets) {
  return BuildHistogram().Name(name).Help(help).Register(metrics->registry()).Add({}, buckets);
}

double UnixSeconds(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

// A counter's increments must be finite and not negative.
double AtLeastZero(double value) { return std::isfinite(value) ? std::max(0.0, value) : 0; }

}  // namespace

std::string LabelOf(absl::string_view name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

JobMetrics::JobMetrics(Metrics* metrics)
    : jobs_(Gauges(metrics, "tandem_jobs", "Current jobs, by state.")),
      created_(Counters(metrics, "tandem_jobs_created_total", "Accepted jobs.").Add({})),
      ended_(Counters(metrics, "tandem_jobs_ended_total", "Ended jobs, by state and reason.")),
      queue_wait_(NewHistogram(metrics, "tandem_job_queue_wait_seconds",
                               "Time of a job in the queue before it got devices.", Buckets(0.1, 4, 11))),
      job_images_per_second_(Gauges(metrics, "tandem_job_images_per_second",
                                    "Training samples per second in a job's last report.")),
      job_progress_(Gauges(metrics, "tandem_job_progress_ratio", "Share of a job's steps that are done.")),
      job_last_report_(Gauges(metrics, "tandem_job_last_report_timestamp_seconds",
                              "When a job last reported progress; old if the job stalls.")),
      job_data_wait_(Gauges(metrics, "tandem_job_data_wait_ratio",
                            "Share of a job's last epoch in which its replicas waited for data.")),
      job_all_reduce_(
          Gauges(metrics, "tandem_job_all_reduce_ratio",
                 "Share of a job's last epoch in which its replicas averaged or waited for each other.")),
      images_per_second_(Gauges(metrics, "tandem_images_per_second",
                                "Training samples per second of all jobs in their last reports.")
                             .Add({})),
      images_(Counters(metrics, "tandem_images_total", "Reported training samples.").Add({})),
      training_seconds_(Counters(metrics, "tandem_replica_training_seconds_total",
                                 "Seconds of finished epochs, summed over all replicas of all jobs.")
                            .Add({})),
      data_wait_seconds_(Counters(metrics, "tandem_replica_data_wait_seconds_total",
                                  "Seconds of finished epochs in which replicas waited for data.")
                             .Add({})),
      all_reduce_seconds_(
          Counters(metrics, "tandem_replica_all_reduce_seconds_total",
                   "Seconds of finished epochs in which replicas averaged, including waits for each other.")
              .Add({})),
      checkpoints_(Counters(metrics, "tandem_checkpoints_total", "Written checkpoints.").Add({})),
      checkpoint_seconds_(
          NewHistogram(metrics, "tandem_checkpoint_seconds",
                       "Time from copying the training state until its checkpoint is safely on disk.",
                       Buckets(0.01, 4, 10))),
      worker_losses_(
          Counters(metrics, "tandem_worker_losses_total", "Lost workers: killed, crashed or not started.")
              .Add({})),
      restarts_(
          Counters(metrics, "tandem_job_restarts_total", "Automatic restarts of jobs after lost workers.")
              .Add({})),
      preemptions_(
          Counters(metrics, "tandem_job_preemptions_total", "Preemptions of jobs by jobs of higher priority.")
              .Add({})) {
  // Create all states at once, so that an alert needs no "absent".
  for (int state = v1::JobState_MIN; state <= v1::JobState_MAX; ++state) {
    if (v1::JobState_IsValid(state)) CountState(static_cast<v1::JobState>(state), 0);
  }
}

void JobMetrics::Restore(const std::map<v1::JobState, int64_t>& counts, const std::vector<v1::Job>& jobs) {
  for (const auto& [state, count] : counts) CountState(state, static_cast<double>(count));
  MutexLock lock(&mutex_);
  for (const v1::Job& job : jobs) {
    // If a job returned to the queue, its time is unknown, and its wait is not counted.
    if (job.state() == v1::JOB_STATE_QUEUED && job.attempt() == 0) {
      queued_since_[JobId(job.name())] = TimeOf(job.create_time());
    }
  }
}

void JobMetrics::CountState(v1::JobState state, double by) {
  if (state == v1::JOB_STATE_UNSPECIFIED) return;
  jobs_.Add({{"state", LabelOf(v1::JobState_Name(state), "JOB_STATE_")}}).Increment(by);
}

void JobMetrics::Set(Family<Gauge>& family, const std::string& id, double value, Gauge** gauge) {
  if (*gauge == nullptr) *gauge = &family.Add({{"job", id}});
  (*gauge)->Set(value);
}

void JobMetrics::OnEvent(const v1::JobEvent& event) {
  const std::string id = JobId(event.job());
  MutexLock lock(&mutex_);
  switch (event.kind_case()) {
    case v1::JobEvent::kStateChange:
      OnStateChange(id, event);
      break;
    case v1::JobEvent::kProgress:
      OnProgressReport(id, event);
      break;
    case v1::JobEvent::kEpoch:
      OnEpoch(id, event.epoch());
      break;
    case v1::JobEvent::kCheckpoint:
      checkpoints_.Increment();
      checkpoint_seconds_.Observe(AtLeastZero(event.checkpoint().seconds()));
      break;
    default:
      break;
  }
}

void JobMetrics::OnDeleted(const v1::Job& job) {
  CountState(job.state(), -1);
  MutexLock lock(&mutex_);
  queued_since_.erase(JobId(job.name()));
  Forget(JobId(job.name()));
}

void JobMetrics::OnMoved(const v1::Job& job) {
  if (job.state() != v1::JOB_STATE_QUEUED || !job.has_restart_time()) return;
  MutexLock lock(&mutex_);
  const auto queued = queued_since_.find(JobId(job.name()));
  // Until its restart time, the job does not wait for devices.
  if (queued != queued_since_.end()) queued->second = std::max(queued->second, TimeOf(job.restart_time()));
}

void JobMetrics::OnStateChange(const std::string& id, const v1::JobEvent& event) {
  const v1::StateChange& change = event.state_change();
  CountState(change.from(), -1);
  CountState(change.to(), 1);
  if (change.from() == v1::JOB_STATE_UNSPECIFIED) created_.Increment();
  if (IsTerminal(change.to())) {
    ended_
        .Add({{"state", LabelOf(v1::JobState_Name(change.to()), "JOB_STATE_")},
              {"reason", LabelOf(v1::StateReason_Name(change.reason()), "STATE_REASON_")}})
        .Increment();
  }
  if (change.reason() == v1::STATE_REASON_WORKER_LOST || change.reason() == v1::STATE_REASON_RESTARTING ||
      change.reason() == v1::STATE_REASON_WORKER_START_FAILED) {
    worker_losses_.Increment();
  }
  if (change.reason() == v1::STATE_REASON_RESTARTING) restarts_.Increment();
  if (change.to() == v1::JOB_STATE_PREEMPTING) preemptions_.Increment();

  const auto queued = queued_since_.find(id);
  if (queued != queued_since_.end() && change.to() == v1::JOB_STATE_STARTING) {
    queue_wait_.Observe(AtLeastZero(absl::ToDoubleSeconds(TimeOf(event.time()) - queued->second)));
  }
  if (change.to() == v1::JOB_STATE_QUEUED) {
    queued_since_[id] = TimeOf(event.time());
  } else if (queued != queued_since_.end()) {
    queued_since_.erase(queued);
  }
  if (!IsHolding(change.to())) Forget(id);
}

void JobMetrics::OnProgressReport(const std::string& id, const v1::JobEvent& event) {
  const v1::Progress& progress = event.progress();
  Running& running = running_[id];
  const double before = running.images_per_second == nullptr ? 0 : running.images_per_second->Value();
  const double now = AtLeastZero(progress.images_per_second());
  Set(job_images_per_second_, id, now, &running.images_per_second);
  images_per_second_.Increment(now - before);
  images_.Increment(AtLeastZero(static_cast<double>(progress.training().samples())));
  if (progress.steps() > 0) {
    Set(job_progress_, id, static_cast<double>(progress.step()) / static_cast<double>(progress.steps()),
        &running.progress);
  }
  Set(job_last_report_, id, UnixSeconds(TimeOf(event.time())), &running.last_report);
}

void JobMetrics::OnEpoch(const std::string& id, const v1::EpochSummary& epoch) {
  double data_wait = 0;
  double all_reduce = 0;
  for (const v1::ReplicaShare& replica : epoch.replicas()) {
    data_wait += AtLeastZero(replica.data_wait_seconds());
    all_reduce += AtLeastZero(replica.reduce_seconds());
  }
  const double training = AtLeastZero(epoch.training_seconds()) * epoch.replicas_size();
  training_seconds_.Increment(training);
  data_wait_seconds_.Increment(data_wait);
  all_reduce_seconds_.Increment(all_reduce);
  if (training <= 0) return;
  Running& running = running_[id];
  Set(job_data_wait_, id, data_wait / training, &running.data_wait);
  Set(job_all_reduce_, id, all_reduce / training, &running.all_reduce);
}

void JobMetrics::Forget(const std::string& id) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  const Running& running = found->second;
  if (running.images_per_second != nullptr) {
    images_per_second_.Decrement(running.images_per_second->Value());
    job_images_per_second_.Remove(running.images_per_second);
  }
  if (running.progress != nullptr) job_progress_.Remove(running.progress);
  if (running.last_report != nullptr) job_last_report_.Remove(running.last_report);
  if (running.data_wait != nullptr) job_data_wait_.Remove(running.data_wait);
  if (running.all_reduce != nullptr) job_all_reduce_.Remove(running.all_reduce);
  running_.erase(found);
  // Remove rounding errors of the sum.
  if (running_.empty()) images_per_second_.Set(0);
}

}  // namespace tandem
