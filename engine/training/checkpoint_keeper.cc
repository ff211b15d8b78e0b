#include "engine/training/checkpoint_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/memory_error.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/checkpoint_folder.h"

namespace tandem {

CheckpointKeeper::CheckpointKeeper(Options options)
    : options_(std::move(options)), last_step_(options_.last_step) {
  thread_ = std::thread([this] { WriteAll(); });
}

CheckpointKeeper::~CheckpointKeeper() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void CheckpointKeeper::Add(Snapshot snapshot, Purpose purpose, TrainingState state) {
  Work work = {.snapshot = std::move(snapshot),
               .purpose = purpose,
               .state = std::move(state),
               .since = options_.clock->Elapsed()};
  MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &CheckpointKeeper::IsIdle));
  work_ = std::move(work);
  busy_ = true;
}

void CheckpointKeeper::Flush() {
  MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &CheckpointKeeper::IsIdle));
}

int64_t CheckpointKeeper::last_step() const {
  MutexLock lock(&mutex_);
  return last_step_;
}

void CheckpointKeeper::WriteAll() {
  while (true) {
    Work work;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &CheckpointKeeper::MayWork));
      if (!work_.has_value()) return;
      work = *std::move(work_);
      work_.reset();
    }
    const int64_t step = work.state.step;
    const absl::Status status = CatchNoMemory([&] {
      Write(std::move(work));
      return absl::OkStatus();
    });
    if (!status.ok()) {
      options_.observer->OnNotice(absl::StrCat("The checkpoint or model of step ", step,
                                               " could not be written: ", status.message(),
                                               "; training continues."));
    }
    MutexLock lock(&mutex_);
    busy_ = false;
  }
}

void CheckpointKeeper::Write(Work work) {
  // The model comes first, so that no checkpoint names a missing best model.
  if (work.purpose.best) {
    const absl::Status status =
        options_.save_model(options_.best_path, work.snapshot, work.state.summary.best());
    if (status.ok()) {
      options_.observer->OnBestModel(work.state.summary.best());
    } else {
      options_.observer->OnNotice(absl::StrCat("The model with the best result so far, that of step ",
                                               work.state.step, ", could not be written: ", status.message(),
                                               "; training continues."));
    }
  }
  if (work.purpose.checkpoint) WriteCheckpoint(std::move(work));
}

void CheckpointKeeper::WriteCheckpoint(Work work) {
  const std::string file = CheckpointFileName(work.state.step);
  const std::string path = absl::StrCat(options_.checkpoint_folder, "/", file);
  absl::StatusOr<int64_t> size = tandem::WriteCheckpoint(
      options_.env, path, ToJson(work.state), CheckpointTensors(std::exchange(work.snapshot, Snapshot())));
  if (size.ok()) {
    if (const absl::Status verified = VerifyCheckpoint(options_.env, path); !verified.ok()) {
      options_.env->RemoveFile(path).IgnoreError();
      size = verified;
    }
  }
  const int64_t best_step = work.state.summary.has_best() ? work.state.summary.best().step() : 0;
  int64_t last_step = 0;
  {
    MutexLock lock(&mutex_);
    if (size.ok()) last_step_ = work.state.step;
    last_step = last_step_;
  }
  if (size.ok()) RemoveOthers(work.state.step, best_step);
  if (!size.ok()) {
    options_.observer->OnNotice(absl::StrCat(
        "The checkpoint of step ", work.state.step, " could not be written: ", size.status().message(),
        "; training continues, and would restart ",
        last_step == 0 ? "from the beginning" : absl::StrCat("from the checkpoint of step ", last_step),
        "."));
    return;
  }
  v1::Checkpoint checkpoint;
  checkpoint.set_step(work.state.step);
  checkpoint.set_epoch(work.state.summary.epochs());
  checkpoint.set_size_bytes(*size);
  checkpoint.set_seconds(absl::ToDoubleSeconds(options_.clock->Elapsed() - work.since));
  checkpoint.set_file(file);
  checkpoint.set_best(best_step == work.state.step);
  options_.observer->OnCheckpoint(checkpoint);
}

void CheckpointKeeper::RemoveOthers(int64_t step, int64_t best_step) {
  const absl::StatusOr<std::vector<std::string>> files =
      ListCheckpointFiles(options_.env, options_.checkpoint_folder);
  absl::Status status = files.status();
  int newest = 0;
  for (const std::string& file : files.ok() ? *files : std::vector<std::string>()) {
    const int64_t other = *StepOfCheckpointFile(file);
    // A file newer than `step` was skipped as damaged: training did not continue from it.
    const bool is_newest = other <= step && newest++ < options_.checkpoints.keep_last();
    if (is_newest || (options_.checkpoints.keep_best() && other == best_step)) continue;
    status.Update(options_.env->RemoveFile(absl::StrCat(options_.checkpoint_folder, "/", file)));
  }
  if (!status.ok()) {
    options_.observer->OnNotice(
        absl::StrCat("A checkpoint that is not kept any more could not be removed: ", status.message()));
  }
}

}  // namespace tandem
