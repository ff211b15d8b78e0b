#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/sha256.h"
#include "server/jobs/model_artifact.h"
#include "server/rpc/deferred_source.h"
#include "server/rpc/file_reader.h"
#include "server/rpc/handlers.h"
#include "server/store/records.h"

namespace tandem::rpc {
namespace {

// The pieces of a file of known size.
class ArtifactPieces : public ItemSource<v1::ReadArtifactResponse> {
 public:
  ArtifactPieces(std::unique_ptr<FileReader> reader, const v1::Artifact& artifact, int64_t offset,
                 FairPool* pool, std::string user)
      : state_(std::make_shared<State>(std::move(reader), artifact, offset)),
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
    State(std::unique_ptr<FileReader> reader, const v1::Artifact& artifact, int64_t offset)
        : reader(std::move(reader)), name(artifact.name()), size(artifact.size_bytes()), offset(offset) {}

    Result Read() {
      // An empty file, or an offset at the end, still gives one piece with the size.
      if (offset >= size && given) return std::nullopt;
      absl::StatusOr<std::string> piece = reader->Read(offset);
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

    const std::unique_ptr<FileReader> reader;
    const std::string name;
    const int64_t size;
    int64_t offset;
    bool given = false;
  };

  const std::shared_ptr<State> state_;
  FairPool* const pool_;
  const std::string user_;
};

// Calls CheckModelSha256. For a continued download, skips the check if it succeeded before and the file is
// unchanged.
absl::Status CheckOnce(const std::string& path, const std::string& sha256, int64_t offset,
                       Memo<bool>* checked_artifacts) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path));
  const std::string key =
      absl::StrCat(path, ";", sha256, ";", info.st_ino, ";", info.st_size, ";", info.st_mtim.tv_sec, ".",
                   info.st_mtim.tv_nsec, ";", info.st_ctim.tv_sec, ".", info.st_ctim.tv_nsec);
  if (offset > 0 && checked_artifacts->Find(key).has_value()) return absl::OkStatus();
  if (absl::Status same = CheckModelSha256(path, sha256); !same.ok()) return same;
  checked_artifacts->Add(key, true);
  return absl::OkStatus();
}

Source<v1::ReadArtifactResponse> Open(const std::string& user, const v1::ReadArtifactRequest& request,
                                      const std::string& id, JobMachine* jobs, Memo<bool>* checked_artifacts,
                                      FairPool* pool) {
  const absl::StatusOr<v1::Job> job = jobs->Get(id);
  if (!job.ok()) return ExplainJobError(job.status(), request.name());
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
  auto reader = std::make_unique<FileReader>(path);
  // The file may be newer than its record. Use the size of the opened file, whatever replaces it.
  std::error_code error;
  if (known.sha256().empty() && std::filesystem::exists(path, error)) {
    const absl::StatusOr<int64_t> size = reader->Size();
    if (!size.ok()) return size.status();
    known.set_size_bytes(*size);
  }
  if (request.offset() > known.size_bytes()) {
    return absl::OutOfRangeError(absl::StrCat("offset: is ", request.offset(), "; it must be at most ",
                                              known.size_bytes(), ", the size of the artifact"));
  }
  // Send no byte of a wrong file. A shorter file is found at its end. While the job runs, a better model may
  // replace the reported file.
  if (IsAtRest(job->state()) &&
      static_cast<int64_t>(std::filesystem::file_size(path, error)) >= known.size_bytes() && !error) {
    if (absl::Status same = CheckOnce(path, known.sha256(), request.offset(), checked_artifacts);
        !same.ok()) {
      const absl::StatusOr<v1::Job> now = jobs->Get(id);
      // The job may have been resumed meanwhile.
      if (!now.ok() || IsAtRest(now->state())) return same;
    }
  }
  return std::make_unique<ArtifactPieces>(std::move(reader), known, request.offset(), pool, user);
}

}  // namespace

Source<v1::ReadArtifactResponse> ReadArtifact(const Caller& caller, const v1::ReadArtifactRequest& request,
                                              JobMachine* jobs, Memo<bool>* checked_artifacts, FairPool* pool,
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
      [jobs, checked_artifacts, pool, user = caller.user, request, id = *std::move(id)] {
        return Open(user, request, id, jobs, checked_artifacts, pool);
      });
}

}  // namespace tandem::rpc
