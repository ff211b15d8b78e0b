#include "server/workers/kept_weights.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "server/jobs/transitions.h"
#include "server/store/records.h"

namespace tandem {
namespace {

constexpr char kEnding[] = ".safetensors";

bool IsRegularFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error));
}

}  // namespace

bool HasNoSecondNames(int error) {
  // EPERM: a file system without hard links, or a file of another user on a machine that forbids such links.
  return error == EXDEV || error == EOPNOTSUPP || error == EPERM || error == EMLINK;
}

std::string KeptWeightsFolder(const std::string& jobs_folder) {
  return (std::filesystem::path(jobs_folder).parent_path() / "kept-weights").string();
}

std::string KeptWeightsPath(const std::string& job_folder) {
  const std::filesystem::path folder(job_folder);
  return absl::StrCat(KeptWeightsFolder(folder.parent_path().string()), "/", folder.filename().string(),
                      kEnding);
}

std::string JobOfKeptWeights(const std::string& path) {
  const std::filesystem::path file(path);
  return file.extension() == kEnding ? file.stem().string() : "";
}

std::optional<std::string> FindKeptWeights(const std::string& job_folder) {
  std::string path = KeptWeightsPath(job_folder);
  // A symbolic link is not ours, and would give the worker the right to read another file.
  if (!IsRegularFile(path)) return std::nullopt;
  return path;
}

absl::Status KeepWeights(const std::string& model, const std::string& job_folder, const LinkFunction& link) {
  const std::string kept = KeptWeightsPath(job_folder);
  const std::filesystem::path folder = std::filesystem::path(kept).parent_path();
  TANDEM_RETURN_IF_ERROR(EnsureOwnerFolder(folder.string()));
  // Also sync an existing folder, because its creator may have died before.
  TANDEM_RETURN_IF_ERROR(Env::Real()->SyncDirectory(folder.parent_path().string()));
  std::error_code unknown;  // If the file does not exist, link reports it.
  const std::filesystem::file_type type = std::filesystem::symlink_status(model, unknown).type();
  if (type == std::filesystem::file_type::symlink || type == std::filesystem::file_type::directory) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot keep the initial weights ", model, ": they are not a regular file"));
  }
  if (link(model.c_str(), kept.c_str()) != 0) {
    const int error = errno;
    const std::string what = absl::StrCat("cannot link the initial weights ", model, " to ", kept);
    const absl::Status status = absl::ErrnoToStatus(error, what);
    return HasNoSecondNames(error) ? absl::UnimplementedError(status.message()) : status;
  }
  return Env::Real()->SyncDirectory(folder.string());
}

absl::Status KeepUploadedWeights(const std::string& file, const std::string& job_folder,
                                 const LinkFunction& link) {
  const absl::Status kept = KeepWeights(file, job_folder, link);
  if (!absl::IsUnimplemented(kept)) return kept;
  return LinkOrCopyFile(file, KeptWeightsPath(job_folder), link);
}

absl::Status LinkOrCopyFile(const std::string& from, const std::string& to, const LinkFunction& link) {
  if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  if (!HasNoSecondNames(errno)) {
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

bool MayNeedKeptWeights(const v1::Job& job) {
  return !IsTerminal(job.state()) ||
         NextState(job.state(), Trigger::kResume).outcome != Transition::Outcome::kRefuse;
}

}  // namespace tandem
