#include "server/rpc/forked_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/base/random_access_env.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/training/checkpoint_fit.h"
#include "engine/training/model_file.h"
#include "server/store/records.h"
#include "server/workers/kept_weights.h"
#include "third_party/spdlog/log.h"

namespace tandem::rpc {
namespace {

constexpr char kBestModel[] = "/best.safetensors";

absl::StatusOr<ForkSource> ReadForkSource(const std::string& path) {
  ForkSource source;
  source.path = path;
  TANDEM_ASSIGN_OR_RETURN(source.header, ReadSafetensorsHeader(path));
  const auto unusable = [&path](const absl::Status& status) {
    return absl::DataLossError(absl::StrCat("cannot use the checkpoint ", path, ": ", status.message()));
  };
  const absl::StatusOr<TrainingState> read = StateOfCheckpoint(source.header);
  if (!read.ok()) return unusable(read.status());
  const TrainingState& state = *read;
  absl::StatusOr<DataNames> names = NamesInModel(state.model);
  if (!names.ok()) return unusable(names.status());
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return absl::ErrnoToStatus(errno, path);
  source.best = state.summary.best();
  source.names = *std::move(names);
  source.checkpoint.set_step(state.step);
  source.checkpoint.set_epoch(state.summary.epochs());
  source.checkpoint.set_size_bytes(file.st_size);
  source.checkpoint.set_file(CheckpointFileName(state.step));
  source.checkpoint.set_best(source.best.step() == state.step);
  return source;
}

// Adds the steps of other usable checkpoints to the error.
absl::Status WithOthers(const absl::Status& damage, const std::vector<int64_t>& others) {
  return WithReason(
      absl::DataLossError(others.empty()
                              ? absl::StrCat(damage.message(), "; there is no other checkpoint")
                              : absl::StrCat(damage.message(),
                                             "; use another checkpoint with --from-checkpoint STEP, of step ",
                                             absl::StrJoin(others, ", "))),
      "CHECKPOINT_DAMAGED");
}

// Returns the steps of the job's other checkpoints with valid headers, newest first.
std::vector<int64_t> OtherSteps(const v1::Job& job, int64_t step) {
  std::vector<int64_t> steps;
  const absl::StatusOr<std::vector<std::string>> files = ListCheckpointFiles(Env::Real(), job.folder());
  if (!files.ok()) return steps;
  for (const std::string& file : *files) {
    const absl::StatusOr<ForkSource> source = ReadForkSource(absl::StrCat(job.folder(), "/", file));
    if (source.ok() && source->checkpoint.step() != step) steps.push_back(source->checkpoint.step());
  }
  return steps;
}

// Links the model only if it belongs to this best result. Without a model, the fork says so and continues.
absl::Status LinkBestModel(const std::string& from, const std::string& to, const v1::BestResult& best) {
  const absl::Status linked = LinkOrCopyFile(from, to, ::link);
  if (absl::IsNotFound(linked)) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(linked);
  // The source's record may be older or newer than the file.
  const absl::StatusOr<SafetensorsHeader> header = ReadSafetensorsHeader(to);
  if (header.ok() && IsModelOf(header->metadata, best)) return absl::OkStatus();
  if (unlink(to.c_str()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot remove ", to));
}

}  // namespace

int64_t BytesOf(const ForkSource& source) {
  // The memory of a map's entry besides the entry.
  constexpr size_t kEach = 32;
  size_t bytes = source.checkpoint.SpaceUsedLong() + source.best.SpaceUsedLong();
  for (const auto& entry : source.header.tensors) {
    bytes += kEach + sizeof(entry) + entry.first.capacity() + entry.second.shape.rank() * sizeof(int64_t);
  }
  for (const auto& entry : source.header.metadata) {
    bytes += kEach + sizeof(entry) + entry.first.capacity() + entry.second.capacity();
  }
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<ForkSource> FindForkSource(const v1::Job& job, std::optional<int64_t> step) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                          ListCheckpointFiles(Env::Real(), job.folder()));
  std::vector<int64_t> others;
  absl::Status damage;
  for (const std::string& file : files) {
    const std::string path = absl::StrCat(job.folder(), "/", file);
    const absl::StatusOr<ForkSource> source = ReadForkSource(path);
    const absl::StatusOr<int64_t> named = StepOfCheckpointFile(file);
    const int64_t of = source.ok() ? source->checkpoint.step() : named.value_or(-1);
    const bool is_wanted = damage.ok() && (!step.has_value() || of == *step);
    // Another checkpoint replaced it meanwhile.
    if (absl::IsNotFound(source.status())) continue;
    if (is_wanted) {
      if (source.ok() || !absl::IsDataLoss(source.status())) return source;
      damage = source.status();
    } else if (source.ok()) {
      others.push_back(of);
    }
  }
  if (!damage.ok()) return WithOthers(damage, others);
  return WithReason(
      absl::NotFoundError(
          others.empty() ? absl::StrCat("cannot fork ", job.name(), ": it has no checkpoint",
                                        job.spec().checkpoints().off() ? ", because its checkpoints are off"
                                        : IsTerminal(job.state())      ? ""
                                                                       : " yet")
                         : absl::StrCat("cannot fork ", job.name(), ": it has no checkpoint of step ", *step,
                                        "; give one of the steps ", absl::StrJoin(others, ", "))),
      "CHECKPOINT_NOT_FOUND");
}

absl::Status MakeForkedFolder(const v1::Job& job, const ForkSource& source, const std::string& folder,
                              const std::function<absl::Status()>& go_on) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(folder).parent_path();
  std::filesystem::create_directories(parent, error);
  if (mkdir(folder.c_str(), 0700) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder ", folder));
  }
  const std::string path = absl::StrCat(folder, "/", source.checkpoint.file());
  TANDEM_RETURN_IF_ERROR(LinkOrCopyFile(source.path, path, ::link));
  // Check that the link leads to the examined checkpoint.
  TANDEM_ASSIGN_OR_RETURN(const ForkSource linked, ReadForkSource(path));
  if (linked.checkpoint.step() != source.checkpoint.step()) {
    return absl::NotFoundError(
        absl::StrCat("cannot fork from ", source.path, ": it was replaced meanwhile; try again"));
  }
  // Link the model before the checkpoint is read, which may take long: the source may find a better result at
  // any time.
  if (source.best.step() > 0) {
    TANDEM_RETURN_IF_ERROR(LinkBestModel(job.folder() + kBestModel, folder + kBestModel, source.best));
  }
  // Read everything: otherwise the fork would fail only when it starts, because of a changed tensor.
  const absl::Status whole = VerifyCheckpoint(RandomAccessEnv::Real(), path, go_on);
  if (absl::IsDataLoss(whole)) {
    return WithOthers(absl::DataLossError(absl::StrReplaceAll(whole.message(), {{path, source.path}})),
                      OtherSteps(job, source.checkpoint.step()));
  }
  TANDEM_RETURN_IF_ERROR(whole);
  TANDEM_RETURN_IF_ERROR(Env::Real()->SyncDirectory(folder));
  return Env::Real()->SyncDirectory(parent.string());
}

bool RemoveForkedFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (error) spdlog::warn("cannot remove {}, a folder without a job: {}", folder, error.message());
  return !error;
}

}  // namespace tandem::rpc
