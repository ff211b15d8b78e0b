#include "server/rpc/forked_folder.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/training/checkpoint_fit.h"

namespace tandem::rpc {
namespace {

constexpr char kBestModel[] = "/best.safetensors";

absl::StatusOr<ForkSource> ReadForkSource(const std::string& path) {
  ForkSource source;
  source.path = path;
  TANDEM_ASSIGN_OR_RETURN(source.header, ReadSafetensorsHeader(path));
  const absl::StatusOr<TrainingState> read = StateOfCheckpoint(source.header);
  if (!read.ok()) {
    return absl::DataLossError(
        absl::StrCat("the checkpoint ", path, " cannot be used: ", read.status().message()));
  }
  const TrainingState& state = *read;
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return absl::ErrnoToStatus(errno, path);
  source.best_step = state.summary.has_best() ? state.summary.best().step() : 0;
  source.checkpoint.set_step(state.step);
  source.checkpoint.set_epoch(state.summary.epochs());
  source.checkpoint.set_size_bytes(file.st_size);
  source.checkpoint.set_file(CheckpointFileName(state.step));
  source.checkpoint.set_best(source.best_step == state.step);
  return source;
}

// A second name for a file, which is never changed in place; a copy of it where the file system has no such.
absl::Status LinkFile(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  if (errno != EPERM && errno != EXDEV && errno != EMLINK && errno != ENOTSUP) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot link ", from, " to ", to));
  }
  std::ifstream source(from, std::ios::binary);
  if (!source) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", from));
  return WriteFileAtomically(Env::Real(), to, [&](WritableFile& file) -> absl::Status {
    std::string piece(size_t{1} << 20, '\0');
    while (source.read(piece.data(), static_cast<std::streamsize>(piece.size())) || source.gcount() > 0) {
      TANDEM_RETURN_IF_ERROR(file.Append(absl::string_view(piece).substr(0, source.gcount())));
    }
    if (source.bad()) return absl::InternalError(absl::StrCat("cannot read all of ", from));
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<ForkSource> FindForkSource(const v1::Job& job, std::optional<int64_t> step) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                          ListCheckpointFiles(Env::Real(), job.folder()));
  std::vector<int64_t> steps;
  absl::Status problem;
  for (const std::string& file : files) {
    absl::StatusOr<ForkSource> source = ReadForkSource(absl::StrCat(job.folder(), "/", file));
    // Another took its place meanwhile.
    if (absl::IsNotFound(source.status())) continue;
    if (!source.ok()) {
      problem.Update(source.status());
      continue;
    }
    if (!step.has_value() || source->checkpoint.step() == *step) return source;
    steps.push_back(source->checkpoint.step());
  }
  if (steps.empty() && !problem.ok()) return problem;
  return WithReason(
      absl::NotFoundError(
          steps.empty() ? absl::StrCat(job.name(), " has no checkpoint",
                                       job.spec().checkpoints().off() ? ": its checkpoints are off" : " yet")
                        : absl::StrCat(job.name(), " has no checkpoint of step ", *step,
                                       " (any more); it has those of ", absl::StrJoin(steps, ", "))),
      "CHECKPOINT_NOT_FOUND");
}

absl::Status MakeForkedFolder(const v1::Job& job, const ForkSource& source, const std::string& folder) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(folder).parent_path();
  std::filesystem::create_directories(parent, error);
  if (mkdir(folder.c_str(), 0700) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder ", folder));
  }
  const std::string path = absl::StrCat(folder, "/", source.checkpoint.file());
  TANDEM_RETURN_IF_ERROR(LinkFile(source.path, path));
  // That it is the one that was looked at.
  TANDEM_ASSIGN_OR_RETURN(const ForkSource linked, ReadForkSource(path));
  if (linked.checkpoint.step() != source.checkpoint.step()) {
    return absl::NotFoundError(absl::StrCat(source.path, " was replaced meanwhile; try again"));
  }
  // The other job may have had a better result since.
  if (source.best_step > 0 && job.best().step() == source.best_step) {
    const absl::Status best = LinkFile(job.folder() + kBestModel, folder + kBestModel);
    if (!best.ok() && !absl::IsNotFound(best)) return best;
  }
  TANDEM_RETURN_IF_ERROR(Env::Real()->SyncDirectory(folder));
  return Env::Real()->SyncDirectory(parent.string());
}

bool RemoveForkedFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (error) spdlog::warn("cannot remove {}, of which there is no job: {}", folder, error.message());
  return !error;
}

}  // namespace tandem::rpc
