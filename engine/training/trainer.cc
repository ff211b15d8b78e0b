#include "engine/training/trainer.h"

#include <atomic>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/memory_error.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "engine/collectives/local/local_group.h"
#include "engine/training/coordinator.h"
#include "engine/training/plan.h"
#include "engine/training/replica_loop.h"
#include "engine/training/replica_spec.h"
#include "engine/training/training_setup.h"

namespace tandem {
namespace {

// Starts the loops of this process's ranks, each on its own thread, joins them, and keeps the first error.
class JobTrainer final : public Trainer {
 public:
  JobTrainer(Options options, v1::DatasetSpec submitted)
      : setup_(std::move(options), std::move(submitted)),
        coordinator_(setup_.first_rank() == 0 ? std::make_unique<Coordinator>(&setup_) : nullptr) {}

  absl::Status Run() override;
  void Cancel() override { Fail(absl::CancelledError("training was cancelled")); }
  void Pause() override {
    if (coordinator_ != nullptr) coordinator_->Pause();
  }
  TrainingOutcome outcome() const override {
    return coordinator_ == nullptr ? TrainingOutcome() : coordinator_->outcome();
  }
  v1::TrainingSummary Summary() const override {
    return coordinator_ == nullptr ? v1::TrainingSummary() : coordinator_->Summary();
  }
  absl::Status SaveModel(const std::string& path) const override {
    if (coordinator_ != nullptr) return coordinator_->SaveModel(path);
    return absl::FailedPreconditionError("the first of several workers has the model");
  }

 private:
  // Creates or joins the group of all ranks.
  absl::Status Connect();
  // Connects, then opens all inputs. An error of a worker becomes the error of all workers.
  absl::Status Begin();
  // The body of a rank's thread.
  void RunLoop(ReplicaLoop* loop, Communicator* communicator);

  // Ends the training. The first error counts.
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return failure_;
  }
  // Returns the first error, if a loop has ended with an error. A cancellation may come after the last step.
  absl::Status result() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return has_failed_ ? failure_ : absl::OkStatus();
  }

  TrainingSetup setup_;
  const std::unique_ptr<Coordinator> coordinator_;  // Null but in the process of rank 0.
  // By local rank.
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<std::unique_ptr<ReplicaLoop>> loops_;
  std::atomic<Communicator*> group_{nullptr};  // One of the communicators, after Connect.
  mutable Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool has_failed_ ABSL_GUARDED_BY(mutex_) = false;  // Whether a loop has ended with an error.
};

void JobTrainer::Fail(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    if (failure_.ok()) failure_ = status;
  }
  if (Communicator* const group = group_.load(); group != nullptr) group->Abort(status);
}

absl::Status JobTrainer::Connect() {
  if (setup_.spread()) {
    TANDEM_ASSIGN_OR_RETURN(communicators_,
                            setup_.options().group.connect(setup_.first_rank(), setup_.local_ranks()));
  } else {
    communicators_ = CreateLocalGroup(setup_.ranks(), setup_.options().watchdog);
  }
  group_.store(communicators_[0].get());
  const absl::Status cancelled = failure();
  // A cancellation during the connection did not reach the group.
  if (!cancelled.ok()) communicators_[0]->Abort(cancelled);
  return cancelled;
}

absl::Status JobTrainer::Begin() {
  TANDEM_RETURN_IF_ERROR(failure());
  // The connection comes first, so that workers learn of each other's failures.
  TANDEM_RETURN_IF_ERROR(Connect());
  const absl::Status opened = CatchNoMemory([this]() -> absl::Status {
    TANDEM_RETURN_IF_ERROR(setup_.Open());
    if (coordinator_ != nullptr) coordinator_->Open();
    return absl::OkStatus();
  });
  if (opened.ok() || !setup_.spread()) return opened;
  const int worker = setup_.options().group.worker;
  communicators_[0]->Abort(
      worker == 0 ? opened
                  : absl::Status(opened.code(), absl::StrCat("worker ", worker, ": ", opened.message())));
  // Any worker's error becomes the error of all.
  return communicators_[0]->Barrier();
}

absl::Status JobTrainer::Run() {
  TANDEM_RETURN_IF_ERROR(Begin());
  std::shared_ptr<const BeginningValues> beginning = setup_.TakeBeginning();
  for (int local = 0; local < setup_.local_ranks(); ++local) {
    loops_.push_back(std::make_unique<ReplicaLoop>(&setup_, beginning, communicators_[local].get(),
                                                   local == 0 ? coordinator_.get() : nullptr,
                                                   local == 0 ? nullptr : loops_[0].get()));
  }
  beginning.reset();
  std::vector<std::thread> threads;
  for (int local = 0; local < setup_.local_ranks(); ++local) {
    threads.emplace_back([this, local] { RunLoop(loops_[local].get(), communicators_[local].get()); });
  }
  for (std::thread& thread : threads) thread.join();
  if (coordinator_ == nullptr) return result();
  coordinator_->Flush();
  return coordinator_->WithCheckpoint(result());
}

void JobTrainer::RunLoop(ReplicaLoop* loop, Communicator* communicator) {
  absl::Status status = CatchNoMemory([loop] { return loop->Run(); });
  const bool ends_group = !status.ok() && setup_.ranks() > 1 && failure().ok();
  if (ends_group) {
    // The rank matters if a device failed. Errors of the reports concern all ranks.
    const bool is_shared = absl::IsOutOfRange(status);
    if (!is_shared) {
      const int rank = communicator->rank();
      status = absl::Status(
          status.code(), absl::StrCat("replica ", rank, " on ", setup_.options().devices[rank].name(), ": ",
                                      status.message()));
    }
    // Abort comes first, because the device may wait for ranks that wait for this rank.
    communicator->Abort(status);
  }
  // Unfinished work of a device may use the memory of others. That memory is freed after all threads are
  // here.
  loop->Wait();
  if (status.ok()) return;
  // The first error of all ranks counts.
  if (ends_group) status = communicator->Barrier();
  Fail(status);
  MutexLock lock(&mutex_);
  has_failed_ = true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(Options options) {
  v1::DatasetSpec submitted = options.spec.dataset();
  *options.spec.mutable_dataset() = options.dataset;
  FillDefaults(&options.spec);
  TANDEM_RETURN_IF_ERROR(CheckJob(options.spec));
  if (const size_t replicas = LoadsOf(options.spec.replicas()).size(); replicas != options.devices.size()) {
    return FieldError("replicas.count", absl::StrCat("asks for ", replicas, " that compute, but ",
                                                     options.devices.size(), " devices were given"));
  }
  const TrainerGroup& group = options.group;
  if (group.workers < 1 || group.worker < 0 || group.worker >= group.workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", group.worker, " is not one of ", group.workers));
  }
  if (options.devices.size() % group.workers != 0) {
    return FieldError("replicas.workers",
                      absl::StrCat("there are ", group.workers, " workers for ", options.devices.size(),
                                   " replicas, which they cannot share equally"));
  }
  if (group.workers > 1 && group.connect == nullptr) {
    return absl::InvalidArgumentError("several workers need a way to connect");
  }
  if (options.device_factory == nullptr) return absl::InvalidArgumentError("a device factory is needed");
  return std::make_unique<JobTrainer>(std::move(options), std::move(submitted));
}

}  // namespace tandem
