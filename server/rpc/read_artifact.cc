#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/random_access_env.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/training/checkpoint_model.h"
#include "server/jobs/model_artifact.h"
#include "server/rpc/deferred_source.h"
#include "server/rpc/file_reader.h"
#include "server/rpc/handlers.h"
#include "server/store/records.h"

namespace tandem::rpc {
namespace {

// The handler's dependencies.
struct ArtifactParts {
  JobMachine* jobs;
  const Lifecycle* lifecycle;
  Memo<bool>* checked_artifacts;
  FairPool* pool;
  FairPool* user_pool;
};

// Returns the next piece from an offset on; empty at the end.
using ReadPiece = std::function<absl::StatusOr<std::string>(int64_t offset)>;

// The pieces of an artifact of known size.
class ArtifactPieces : public ItemSource<v1::ReadArtifactResponse> {
 public:
  ArtifactPieces(ReadPiece read, const v1::Artifact& artifact, int64_t offset, FairPool* pool,
                 std::string user)
      : state_(std::make_shared<State>(std::move(read), artifact, offset)),
        pool_(pool),
        user_(std::move(user)) {}

  void Next(Callback callback) override {
    pool_->Post(user_,
                [state = state_, callback = std::move(callback)]() mutable { callback(state->Read()); });
  }
  // Each read ends by itself.
  void Cancel() override {}

 private:
  struct State {
    State(ReadPiece read, const v1::Artifact& artifact, int64_t offset)
        : read(std::move(read)), name(artifact.name()), size(artifact.size_bytes()), offset(offset) {}

    Result Read() {
      // An empty file, or an offset at the end, still gives one piece with the size.
      if (offset >= size && given) return std::nullopt;
      absl::StatusOr<std::string> piece = read(offset);
      if (!piece.ok()) return piece.status();
      if (static_cast<int64_t>(piece->size()) > size - offset) piece->resize(size - offset);
      if (piece->empty() && offset < size) {
        return absl::DataLossError(absl::StrCat("cannot read the artifact '", name,
                                                "': its file ends at byte ", offset, " of ", size,
                                                "; it was removed or cut on the daemon's machine"));
      }
      v1::ReadArtifactResponse response;
      response.set_offset(offset);
      response.set_size_bytes(size);
      offset += static_cast<int64_t>(piece->size());
      response.set_data(*std::move(piece));
      given = true;
      return response;
    }

    const ReadPiece read;
    const std::string name;
    const int64_t size;
    int64_t offset;
    bool given = false;
  };

  const std::shared_ptr<State> state_;
  FairPool* const pool_;
  const std::string user_;
};

// Calls `check`, which compares the file with `sha256` or with its own digest. For a continued download,
// skips the check if it succeeded before and the file is unchanged.
absl::Status CheckOnce(const std::string& path, const std::string& sha256, int64_t offset,
                       Memo<bool>* checked_artifacts, absl::FunctionRef<absl::Status()> check) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path));
  const std::string key =
      absl::StrCat(path, ";", sha256, ";", info.st_ino, ";", info.st_size, ";", info.st_mtim.tv_sec, ".",
                   info.st_mtim.tv_nsec, ";", info.st_ctim.tv_sec, ".", info.st_ctim.tv_nsec);
  if (offset > 0 && checked_artifacts->Find(key).has_value()) return absl::OkStatus();
  if (absl::Status same = check(); !same.ok()) return same;
  checked_artifacts->Add(key, true);
  return absl::OkStatus();
}

absl::Status CheckOffset(const v1::ReadArtifactRequest& request, int64_t size) {
  if (request.offset() <= size) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("offset: is ", request.offset(), "; it must be at most ", size,
                                            ", the size of the artifact"));
}

absl::StatusOr<std::shared_ptr<const CheckpointModel>> OpenCheckpointModel(const ArtifactParts& parts,
                                                                           const std::string& path,
                                                                           int64_t offset) {
  RandomAccessEnv* const env = RandomAccessEnv::Real();
  // A hijacked worker may have written a file of any size.
  const auto go_on = [&parts] { return parts.lifecycle->CheckServing(); };
  TANDEM_RETURN_IF_ERROR(CheckOnce(path, /*sha256=*/"", offset, parts.checked_artifacts,
                                   [&] { return VerifyCheckpoint(env, path, go_on); }));
  return CheckpointModel::Open(env, path);
}

// Streams the model of the job's checkpoint of `step`.
Source<v1::ReadArtifactResponse> OpenCheckpoint(const ArtifactParts& parts, const std::string& user,
                                                const v1::ReadArtifactRequest& request, const v1::Job& job,
                                                int64_t step) {
  TANDEM_ASSIGN_OR_RETURN(const ModelFile file, FindCheckpoint(job, step));
  const absl::StatusOr<std::shared_ptr<const CheckpointModel>> model =
      OpenCheckpointModel(parts, file.path, request.offset());
  if (absl::IsDataLoss(model.status())) return WithReason(model.status(), "CHECKPOINT_DAMAGED");
  if (absl::IsNotFound(model.status())) {
    // Training removed the checkpoint meanwhile.
    TANDEM_RETURN_IF_ERROR(FindCheckpoint(job, step).status());
  }
  TANDEM_RETURN_IF_ERROR(model.status());
  TANDEM_ASSIGN_OR_RETURN(FairPool::Hold memory, parts.user_pool->HoldMore(user, (*model)->memory_bytes()));
  v1::Artifact artifact;
  artifact.set_name(request.artifact());
  artifact.set_size_bytes((*model)->size_bytes());
  TANDEM_RETURN_IF_ERROR(CheckOffset(request, artifact.size_bytes()));
  return std::make_unique<ArtifactPieces>(
      [model = *model, memory = std::make_shared<FairPool::Hold>(std::move(memory))](int64_t offset) {
        return model->Read(offset, FileReader::kPieceBytes);
      },
      artifact, request.offset(), parts.pool, user);
}

Source<v1::ReadArtifactResponse> Open(const ArtifactParts& parts, const std::string& user,
                                      const v1::ReadArtifactRequest& request, const std::string& id) {
  const absl::StatusOr<v1::Job> job = parts.jobs->Get(id);
  if (!job.ok()) return ExplainJobError(job.status(), request.name());
  if (const std::optional<int64_t> step = StepOfCheckpointModel(request.artifact()); step.has_value()) {
    return OpenCheckpoint(parts, user, request, *job, *step);
  }
  const auto artifact =
      std::find_if(job->artifacts().begin(), job->artifacts().end(),
                   [&](const v1::Artifact& candidate) { return candidate.name() == request.artifact(); });
  if (artifact == job->artifacts().end() || !StaysInFolder(artifact->name())) {
    std::string names;
    for (const v1::Artifact& other : job->artifacts())
      absl::StrAppend(&names, names.empty() ? "" : ", ", other.name());
    return WithReason(
        absl::NotFoundError(absl::StrCat(
            request.name(), " has no artifact '", absl::CHexEscape(request.artifact().substr(0, 80)), "'; ",
            names.empty() ? "it has none yet: they are written when training ends" : "it has " + names)),
        "ARTIFACT_NOT_FOUND");
  }
  const std::string path = absl::StrCat(job->folder(), "/", artifact->name());
  v1::Artifact known = *artifact;
  const auto reader = std::make_shared<FileReader>(path);
  // The file may be newer than its record. Use the size of the opened file, whatever replaces it.
  std::error_code error;
  if (known.sha256().empty() && std::filesystem::exists(path, error)) {
    const absl::StatusOr<int64_t> size = reader->Size();
    if (!size.ok()) return size.status();
    known.set_size_bytes(*size);
  }
  TANDEM_RETURN_IF_ERROR(CheckOffset(request, known.size_bytes()));
  // Send no byte of a wrong file. A shorter file is found at its end. While the job runs, a better model may
  // replace the reported file.
  if (IsAtRest(job->state()) &&
      static_cast<int64_t>(std::filesystem::file_size(path, error)) >= known.size_bytes() && !error) {
    if (absl::Status same = CheckOnce(path, known.sha256(), request.offset(), parts.checked_artifacts,
                                      [&] { return CheckModelSha256(path, known.sha256()); });
        !same.ok()) {
      const absl::StatusOr<v1::Job> now = parts.jobs->Get(id);
      // The job may have been resumed meanwhile.
      if (!now.ok() || IsAtRest(now->state())) return same;
    }
  }
  return std::make_unique<ArtifactPieces>([reader](int64_t offset) { return reader->Read(offset); }, known,
                                          request.offset(), parts.pool, user);
}

}  // namespace

Source<v1::ReadArtifactResponse> ReadArtifact(const Caller& caller, const v1::ReadArtifactRequest& request,
                                              JobMachine* jobs, const Lifecycle* lifecycle,
                                              Memo<bool>* checked_artifacts, FairPool* pool,
                                              FairPool* user_pool) {
  absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) return id.status();
  if (request.artifact().empty())
    return FieldError("artifact", "is required: the name of one of the job's artifacts");
  if (request.offset() < 0) {
    return FieldError("offset", absl::StrCat("is ", request.offset(), "; it must be at least 0"));
  }
  // Reads a whole model.
  return std::make_unique<DeferredSource<v1::ReadArtifactResponse>>(
      user_pool, caller.user, static_cast<int64_t>(request.SpaceUsedLong()),
      [parts = ArtifactParts{jobs, lifecycle, checked_artifacts, pool, user_pool}, user = caller.user,
       request, id = *std::move(id)] { return Open(parts, user, request, id); });
}

}  // namespace tandem::rpc
