#ifndef TANDEM_SERVER_WORKER_JOB_RUN_H_
#define TANDEM_SERVER_WORKER_JOB_RUN_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/training/trainer.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// One job, from its launch to its FINISHED event: trains it, writes its artifacts into its folder, and
// reports all of it. Thread-safe.
class JobRun : private TrainerObserver {
 public:
  // Trainer::Create, or a test's.
  using TrainerFactory = std::function<absl::StatusOr<std::unique_ptr<Trainer>>(Trainer::Options)>;
  // Takes an event: EventReporter::Report. After an error nothing more is reported and training stops.
  using Report = std::function<absl::Status(internal::v1::WorkerEvent)>;

  JobRun(internal::v1::WorkerLaunch launch, DeviceFactory device_factory, TrainerFactory trainer_factory,
         Report report)
      : launch_(std::move(launch)),
        device_factory_(std::move(device_factory)),
        trainer_factory_(std::move(trainer_factory)),
        report_(std::move(report)) {}

  // Trains to the end; call once. However training ends, a FINISHED event says so. Errors are those of
  // reporting.
  absl::Status Run();
  // Whether Run ended because CUDA failed in a way that leaves this process unusable: of a GPU that may be
  // broken.
  bool device_failed() const;
  // Makes Run end soon, with CANCELLED; with a checkpoint and the model if training has begun. From any
  // thread, at any time.
  void Cancel();
  // Makes Run end soon, with PAUSED, a checkpoint and the model, unless training ends before. Likewise.
  void Pause();

 private:
  void OnStarted(int64_t step) override;
  void OnResumed(const v1::Checkpoint& checkpoint) override;
  void OnProgress(const v1::Progress& progress) override;
  void OnEpoch(const v1::EpochSummary& epoch) override;
  void OnValidation(const v1::ValidationResult& result) override;
  void OnCheckpoint(const v1::Checkpoint& checkpoint) override;
  void OnBestModel(const v1::BestResult& best) override;
  void OnWorkerLoads(const v1::WorkerLoads& loads) override;
  void OnNotice(absl::string_view message) override;

  // How training ended.
  internal::v1::Finished Train();
  // The same, once the trainer has been run, with this status.
  internal::v1::Finished End(const Trainer& trainer, const absl::Status& trained);
  // The same of a training that was told to stop, and did after a step.
  internal::v1::Finished EndStopped(const Trainer& trainer, bool cancelled);
  absl::Status WriteSpec() const;
  // Writes the model and tells of it. RESOURCE_EXHAUSTED: there is no memory for it.
  absl::Status SaveModel(const Trainer& trainer, absl::string_view description);
  // Says what the best model is that an earlier attempt left, where there is one.
  void ReportEarlierBest();
  std::string PathOf(absl::string_view name) const;
  void Send(internal::v1::WorkerEvent event);
  void NoteFailure(const absl::Status& status);

  const internal::v1::WorkerLaunch launch_;
  const DeviceFactory device_factory_;
  const TrainerFactory trainer_factory_;
  const Report report_;

  mutable Mutex mutex_;
  bool device_failed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  // Training has begun: what is cancelled from then on is worth keeping.
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  // While it trains.
  Trainer* trainer_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // The first error of reporting.
  absl::Status report_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_JOB_RUN_H_
