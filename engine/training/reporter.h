#ifndef TANDEM_ENGINE_TRAINING_REPORTER_H_
#define TANDEM_ENGINE_TRAINING_REPORTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "engine/schedules/learning_rate.h"
#include "engine/training/trainer.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// What a replica measured since it last said so.
struct Measurement {
  std::vector<double> sums;  // As a meter's: of the losses, then of each metric.
  int64_t samples = 0;
  double data_wait_seconds = 0;
  double reduce_seconds = 0;
};

// Puts the replicas' measurements together, in the order of ranks, and tells the observer of them. Whoever
// comes last with a measurement calls the observer, so its calls come one at a time. Thread-safe.
class Reporter {
 public:
  // `spec` has its defaults; `devices` are names in the order of ranks; `learning_rate`, which hears of each
  // epoch, `clock` and `observer`, which may be null, outlive it.
  Reporter(const v1::JobSpec& spec, int64_t steps_per_epoch, std::vector<std::string> devices, bool validates,
           LearningRate* learning_rate, const Clock* clock, TrainerObserver* observer);

  // Training begins. Before any measurement.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);

  // What replica `rank` measured up to and with step `steps`, counted from 1 over all epochs. All replicas
  // call this for the same steps, the last of each epoch among them. OUT_OF_RANGE where the mean loss is not
  // finite.
  absl::Status AddTraining(int rank, int64_t steps, Measurement measurement) ABSL_LOCKS_EXCLUDED(mutex_);

  // What replica `rank` measured in validation, after the last step of an epoch. OUT_OF_RANGE as above.
  absl::Status AddValidation(int rank, Measurement measurement) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The replicas' measurements of one report as they come.
  struct Gathering {
    std::vector<Measurement> measurements;  // By rank.
    int count = 0;                          // Of those that have come.

    explicit Gathering(size_t replicas) : measurements(replicas) {}
    // True for the last replica to come; the next one begins anew.
    bool Add(int rank, Measurement measurement);
    // The sum over the replicas, added in the order of ranks.
    Measurement Total() const;
  };

  v1::Evaluation Evaluate(const Measurement& measurement) const;
  void FinishEpoch(v1::EpochSummary epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t epochs_;
  const int64_t steps_per_epoch_;
  const std::vector<std::string> metric_names_;
  const std::vector<std::string> devices_;
  const bool validates_;
  const std::string watched_metric_;  // What the learning rate follows; empty: the loss.
  LearningRate* const learning_rate_;
  const Clock* const clock_;
  TrainerObserver* const observer_;

  Mutex mutex_;
  // Apart, as a replica may have validated before another has said how its training went.
  Gathering training_ ABSL_GUARDED_BY(mutex_);
  Gathering validation_ ABSL_GUARDED_BY(mutex_);
  int64_t reported_steps_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration report_time_ ABSL_GUARDED_BY(mutex_);
  // The epoch in progress so far.
  Measurement epoch_total_ ABSL_GUARDED_BY(mutex_);
  std::vector<Measurement> epoch_shares_ ABSL_GUARDED_BY(mutex_);
  absl::Duration epoch_time_ ABSL_GUARDED_BY(mutex_);
  // A trained epoch that waits for its validation.
  v1::EpochSummary trained_epoch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPORTER_H_
