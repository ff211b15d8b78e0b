#ifndef TANDEM_SERVER_WORKER_JOB_RUN_H_
#define TANDEM_SERVER_WORKER_JOB_RUN_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/training/trainer.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// Runs a job from its launch to its FINISHED event: trains, writes artifacts to the job's folder, and reports
// everything. Thread-safe.
class JobRun : private TrainerObserver {
 public:
  // Trainer::Create, or a test's function.
  using TrainerFactory = std::function<absl::StatusOr<std::unique_ptr<Trainer>>(Trainer::Options)>;
  // Accepts an event, like EventReporter::Report. After an error, training stops, and Run sends no FINISHED
  // event.
  using Report = std::function<absl::Status(internal::v1::WorkerEvent)>;

  JobRun(internal::v1::WorkerLaunch launch, DeviceFactory device_factory, TrainerFactory trainer_factory,
         Report report)
      : launch_(std::move(launch)),
        device_factory_(std::move(device_factory)),
        trainer_factory_(std::move(trainer_factory)),
        report_(std::move(report)) {}

  // Trains to the end. Call once. A FINISHED event describes the end in any case. Errors are those of
  // reporting.
  absl::Status Run();
  // Returns true if Run ended because CUDA left this process unusable, so that the GPU may be broken.
  bool device_failed() const;
  // Makes Run end soon with CANCELLED. If training has begun, writes a checkpoint and the model. Callable
  // from any thread at any time.
  void Cancel();
  // Makes Run end soon with PAUSED, a checkpoint and the model, unless training ends before. Callable from
  // any thread at any time.
  void Pause();
  // Like Pause, but Run ends with FAILED, this reason and a message that begins with `message`. For a cluster
  // that takes the worker's node away. Has no effect on the end if the daemon asks for a pause or a
  // cancellation too.
  void Interrupt(v1::StateReason reason, std::string message);

 private:
  struct Interruption {
    v1::StateReason reason;
    std::string message;
  };

  void OnStarted(int64_t step) override;
  void OnResumed(const v1::Checkpoint& checkpoint) override;
  void OnProgress(const v1::Progress& progress) override;
  void OnEpoch(const v1::EpochSummary& epoch) override;
  void OnValidation(const v1::ValidationResult& result) override;
  void OnCheckpoint(const v1::Checkpoint& checkpoint) override;
  void OnBestModel(const v1::BestResult& best) override;
  void OnWorkerLoads(const v1::WorkerLoads& loads) override;
  void OnParameters(const v1::ParameterReport& report) override;
  void OnNotice(absl::string_view message) override;

  // Trains and returns the end.
  internal::v1::Finished Train();
  // Returns the end after the trainer returned `trained`.
  internal::v1::Finished End(const Trainer& trainer, const absl::Status& trained);
  // Returns the end of a training that stopped after a step because it was told to.
  internal::v1::Finished EndStopped(const Trainer& trainer, bool cancelled);
  absl::Status WriteSpec() const;
  // Writes and reports the model. RESOURCE_EXHAUSTED: not enough memory.
  absl::Status SaveModel(const Trainer& trainer, absl::string_view description);
  // Reports the best model of an earlier attempt, if any.
  void ReportEarlierBest();
  std::string PathOf(absl::string_view name) const;
  // Reports the file `name` of the job's folder. Returns errors of reading the file.
  absl::Status SendArtifact(absl::string_view name, absl::string_view description);
  // Reports the event that `fill` fills. An error stops the training.
  void Send(absl::FunctionRef<void(internal::v1::WorkerEvent&)> fill);
  void NoteFailure(const absl::Status& status);

  const internal::v1::WorkerLaunch launch_;
  const DeviceFactory device_factory_;
  const TrainerFactory trainer_factory_;
  const Report report_;

  mutable Mutex mutex_;
  bool device_failed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Interruption> interruption_ ABSL_GUARDED_BY(mutex_);
  // True if training has begun. A later cancellation keeps its result.
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  // Set during the training.
  Trainer* trainer_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // The first error of reporting.
  absl::Status report_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_JOB_RUN_H_
