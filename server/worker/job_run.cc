#include "server/worker/job_run.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/env.h"
#include "engine/base/memory_error.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "proto/job_file/yaml_writer.h"
#include "server/worker/trainer_options.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using internal::v1::Finished;
using internal::v1::WorkerEvent;

constexpr char kModelFile[] = "model.safetensors";
constexpr char kSpecFile[] = "job.yaml";

Finished MakeFinished(v1::JobState state, v1::StateReason reason, absl::string_view message) {
  Finished finished;
  finished.set_state(state);
  finished.set_reason(reason);
  // A message may name files, and names of files are any bytes.
  finished.set_message(ToUtf8(message));
  return finished;
}

// The CUDA backend's messages begin like this if the process is unusable after the error. The trainer may
// have put the replica before the message.
bool IsDeviceFailure(const absl::Status& status) {
  return absl::IsInternal(status) &&
         (absl::StartsWith(status.message(), "cuda:") || absl::StrContains(status.message(), ": cuda:"));
}

Finished Cancelled(absl::string_view message) {
  return MakeFinished(v1::JOB_STATE_CANCELLED, v1::STATE_REASON_CANCEL_REQUESTED, message);
}

// Describes a paused training.
std::string DescribePause(const v1::TrainingSummary& summary) {
  const std::string text = absl::StrCat("Paused after step ", summary.steps());
  if (summary.checkpoint_step() == summary.steps()) return text + ".";
  return summary.checkpoint_step() > 0
             ? absl::StrCat(text, " without a new checkpoint: it will continue from step ",
                            summary.checkpoint_step(), ".")
             : absl::StrCat(text, " without a checkpoint: it will start from the beginning.");
}

// Describes a cancelled training.
std::string DescribeCancellation(const v1::TrainingSummary& summary, const absl::Status& saved) {
  return absl::StrCat("Stopped after step ", summary.steps(), ". ",
                      summary.checkpoint_step() > 0
                          ? absl::StrCat("Its newest checkpoint is of step ", summary.checkpoint_step())
                          : "It has no checkpoint",
                      saved.ok() ? "; its model can be downloaded."
                                 : absl::StrCat("; its model could not be saved: ", saved.message()));
}

v1::StateReason ReasonOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
      return v1::STATE_REASON_DATA_ERROR;
    case absl::StatusCode::kOutOfRange:
      return v1::STATE_REASON_NON_FINITE_LOSS;
    // The checkpoint cannot be used, or workers do not agree.
    case absl::StatusCode::kFailedPrecondition:
      return v1::STATE_REASON_CHECKPOINT_ERROR;
    // The trainer uses this code only for a lost worker of the job.
    case absl::StatusCode::kUnavailable:
    // A hanging worker counts as lost.
    case absl::StatusCode::kDeadlineExceeded:
      return v1::STATE_REASON_WORKER_LOST;
    default:
      return v1::STATE_REASON_TRAINING_ERROR;
  }
}

// Returns for example ", training loss 0.5 accuracy 0.8", for the log.
std::string Describe(absl::string_view what, const v1::Evaluation& evaluation) {
  std::string text = absl::StrFormat(", %s loss %.4f", what, evaluation.loss());
  const std::map<std::string, double> metrics(evaluation.metrics().begin(), evaluation.metrics().end());
  for (const auto& [name, value] : metrics) absl::StrAppendFormat(&text, " %s %.4f", name, value);
  return text;
}

}  // namespace

absl::Status JobRun::Run() {
  const Finished finished = Train();
  {
    MutexLock lock(&mutex_);
    TANDEM_RETURN_IF_ERROR(report_status_);
  }
  spdlog::info("{}: {}", v1::JobState_Name(finished.state()), finished.message());
  WorkerEvent event;
  *event.mutable_finished() = finished;
  return report_(std::move(event));
}

Finished JobRun::Train() {
  if (const absl::Status status = WriteSpec(); !status.ok()) {
    return MakeFinished(v1::JOB_STATE_FAILED, v1::STATE_REASON_IO_ERROR, status.message());
  }
  Trainer::Options options = TrainerOptionsOf(launch_, device_factory_);
  options.observer = this;
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = trainer_factory_(std::move(options));
  if (!trainer.ok()) {
    NoteFailure(trainer.status());
    return MakeFinished(v1::JOB_STATE_FAILED, ReasonOf(trainer.status()), trainer.status().message());
  }
  {
    MutexLock lock(&mutex_);
    if (cancelled_) return Cancelled("Stopped before training began.");
    trainer_ = trainer->get();
    if (paused_) trainer_->Pause();
  }
  const absl::Status trained = CatchNoMemory([&] { return (*trainer)->Run(); });
  {
    MutexLock lock(&mutex_);
    trainer_ = nullptr;
  }
  NoteFailure(trained);
  Finished finished = End(**trainer, trained);
  // Report it like a lost process: this process cannot continue, but another may.
  if (finished.state() == v1::JOB_STATE_FAILED && device_failed()) {
    finished.set_reason(v1::STATE_REASON_WORKER_LOST);
  }
  v1::TrainingSummary summary = (*trainer)->Summary();
  if (summary.steps() > 0) *finished.mutable_summary() = std::move(summary);
  return finished;
}

Finished JobRun::End(const Trainer& trainer, const absl::Status& trained) {
  bool cancelled = false;
  {
    MutexLock lock(&mutex_);
    cancelled = cancelled_;
  }
  if (cancelled && absl::IsCancelled(trained)) return Cancelled("Stopped before training began.");
  if (!trained.ok()) return MakeFinished(v1::JOB_STATE_FAILED, ReasonOf(trained), trained.message());
  const TrainingOutcome outcome = trainer.outcome();
  if (outcome.reason == v1::STATE_REASON_PAUSE_REQUESTED) return EndStopped(trainer, cancelled);
  absl::Status saved;
  const absl::Status memory = CatchNoMemory([&] {
    saved = SaveModel(trainer, launch_.spec().training().best_model().export_best()
                                   ? "The parameters with the best result, in safetensors format."
                                   : "The trained parameters, in safetensors format.");
    return absl::OkStatus();
  });
  if (!memory.ok()) return MakeFinished(v1::JOB_STATE_FAILED, ReasonOf(memory), memory.message());
  if (!saved.ok()) return MakeFinished(v1::JOB_STATE_FAILED, v1::STATE_REASON_IO_ERROR, saved.message());
  return MakeFinished(v1::JOB_STATE_SUCCEEDED, outcome.reason, outcome.message);
}

Finished JobRun::EndStopped(const Trainer& trainer, bool cancelled) {
  const v1::TrainingSummary summary = trainer.Summary();
  const bool best = launch_.spec().training().best_model().export_best() && summary.has_best();
  const absl::Status saved = CatchNoMemory([&] {
    return SaveModel(trainer,
                     best ? absl::StrCat("The parameters with the best result up to step ", summary.steps(),
                                         ", where training was stopped, in safetensors format.")
                          : absl::StrCat("The parameters after step ", summary.steps(),
                                         ", where training was stopped, in safetensors format."));
  });
  if (cancelled) return Cancelled(DescribeCancellation(summary, saved));
  {
    MutexLock lock(&mutex_);
    // A daemon's order to pause or cancel counts more: the job then needs no new attempt.
    if (interruption_.has_value()) {
      return MakeFinished(v1::JOB_STATE_FAILED, interruption_->reason,
                          absl::StrCat(interruption_->message, " ", DescribeCancellation(summary, saved)));
    }
  }
  // A resumed job needs only the checkpoint.
  if (!saved.ok()) OnNotice(absl::StrCat("cannot save the model at the pause: ", saved.message()));
  return MakeFinished(v1::JOB_STATE_PAUSED, v1::STATE_REASON_PAUSE_REQUESTED, DescribePause(summary));
}

void JobRun::NoteFailure(const absl::Status& status) {
  MutexLock lock(&mutex_);
  device_failed_ = device_failed_ || IsDeviceFailure(status);
}

bool JobRun::device_failed() const {
  MutexLock lock(&mutex_);
  return device_failed_;
}

void JobRun::Pause() {
  MutexLock lock(&mutex_);
  paused_ = true;
  interruption_.reset();
  if (trainer_ != nullptr) trainer_->Pause();
}

void JobRun::Interrupt(v1::StateReason reason, std::string message) {
  MutexLock lock(&mutex_);
  if (!paused_ && !cancelled_) interruption_ = Interruption{reason, std::move(message)};
  paused_ = true;
  if (trainer_ != nullptr) trainer_->Pause();
}

void JobRun::Cancel() {
  MutexLock lock(&mutex_);
  cancelled_ = true;
  if (trainer_ == nullptr) return;
  if (started_) {
    trainer_->Pause();
  } else {
    trainer_->Cancel();
  }
}

std::string JobRun::PathOf(absl::string_view name) const {
  return absl::StrCat(OutputFolderOf(launch_), "/", name);
}

absl::Status JobRun::WriteSpec() const {
  const std::string yaml =
      absl::StrCat("# The job as it was trained, defaults filled in. `tandem submit` takes it again.\n",
                   ToYaml(launch_.spec()));
  return WriteFileAtomically(Env::Real(), PathOf(kSpecFile),
                             [&](WritableFile& file) { return file.Append(yaml); });
}

absl::Status JobRun::SaveModel(const Trainer& trainer, absl::string_view description) {
  TANDEM_RETURN_IF_ERROR(trainer.SaveModel(PathOf(kModelFile)));
  return SendArtifact(kModelFile, description);
}

absl::Status JobRun::SendArtifact(absl::string_view name, absl::string_view description) {
  const std::string path = PathOf(name);
  v1::Artifact artifact;
  TANDEM_ASSIGN_OR_RETURN(*artifact.mutable_sha256(), Sha256OfFile(path));
  std::error_code error;
  artifact.set_size_bytes(static_cast<int64_t>(std::filesystem::file_size(path, error)));
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot read the size of ", path));
  artifact.set_name(std::string(name));
  artifact.set_description(std::string(description));
  Send([&](WorkerEvent& event) { *event.mutable_report()->mutable_artifact() = std::move(artifact); });
  return absl::OkStatus();
}

void JobRun::OnStarted(int64_t step) {
  {
    MutexLock lock(&mutex_);
    started_ = true;
  }
  if (step == 0) {
    spdlog::info("training begins");
  } else {
    spdlog::info("training continues from the checkpoint of step {}", step);
  }
  Send([&](WorkerEvent& event) { event.mutable_started()->set_step(step); });
  const absl::Status spec =
      SendArtifact(kSpecFile, "The job's spec with all defaults; `tandem submit` accepts it.");
  // The file was just written and is only a copy.
  if (!spec.ok()) return OnNotice(spec.message());
  ReportEarlierBest();
}

void JobRun::OnResumed(const v1::Checkpoint& checkpoint) {
  // The attempt that wrote the checkpoint may have ended before reporting it.
  Send([&](WorkerEvent& event) { *event.mutable_report()->mutable_checkpoint() = checkpoint; });
}

void JobRun::ReportEarlierBest() {
  if (!launch_.spec().training().best_model().keep_weights()) return;
  // The earlier attempt may have ended before reporting the file, and this attempt may find no better result.
  // Reading the file takes less time than reading the larger checkpoint.
  const absl::Status best =
      SendArtifact(kBestFile, "The parameters with the best result of the earlier attempts.");
  if (!best.ok() && !absl::IsNotFound(best)) OnNotice(best.message());
}

void JobRun::OnProgress(const v1::Progress& progress) {
  Send([&](WorkerEvent& event) { *event.mutable_report()->mutable_progress() = progress; });
}

void JobRun::OnEpoch(const v1::EpochSummary& epoch) {
  spdlog::info("epoch {} of {}: {:.1f} s, {:.0f} samples/s{}{}", epoch.epoch(), epoch.epochs(),
               epoch.training_seconds(), epoch.images_per_second(), Describe("training", epoch.training()),
               epoch.has_validation() ? Describe("validation", epoch.validation()) : "");
  Send([&](WorkerEvent& event) { *event.mutable_report()->mutable_epoch() = epoch; });
}

void JobRun::OnValidation(const v1::ValidationResult& result) {
  spdlog::info("step {}{}", result.step(), Describe("validation", result.validation()));
  Send([&](WorkerEvent& event) { *event.mutable_report()->mutable_validation() = result; });
}

void JobRun::OnWorkerLoads(const v1::WorkerLoads& loads) {
  for (const v1::ReplicaLoad& replica : loads.replicas()) {
    spdlog::info("replica {} on {}: {:.0f} samples/s, load {}", replica.rank(), replica.device(),
                 replica.samples_per_second(), replica.load());
  }
  Send([&](WorkerEvent& event) { *event.mutable_report()->mutable_worker_loads() = loads; });
}

void JobRun::OnParameters(const v1::ParameterReport& report) {
  Send([&](WorkerEvent& event) { *event.mutable_report()->mutable_parameters() = report; });
}

void JobRun::OnCheckpoint(const v1::Checkpoint& checkpoint) {
  spdlog::info("checkpoint of step {}: {} bytes in {:.2f} s", checkpoint.step(), checkpoint.size_bytes(),
               checkpoint.seconds());
  Send([&](WorkerEvent& event) { *event.mutable_report()->mutable_checkpoint() = checkpoint; });
}

void JobRun::OnBestModel(const v1::BestResult& best) {
  const absl::Status sent =
      SendArtifact(kBestFile, absl::StrFormat("The parameters with the best %s so far, %.6g, of epoch %d.",
                                              best.metric(), best.value(), best.epoch()));
  if (!sent.ok()) OnNotice(sent.message());
}

void JobRun::OnNotice(absl::string_view message) {
  spdlog::info("{}", std::string(message));
  // A notice may name files, as above.
  Send([&](WorkerEvent& event) { event.mutable_report()->mutable_notice()->set_message(ToUtf8(message)); });
}

void JobRun::Send(absl::FunctionRef<void(WorkerEvent&)> fill) {
  WorkerEvent event;
  fill(event);
  const absl::Status status = report_(std::move(event));
  if (status.ok()) return;
  MutexLock lock(&mutex_);
  report_status_.Update(status);
  if (trainer_ != nullptr) trainer_->Cancel();
}

}  // namespace tandem
