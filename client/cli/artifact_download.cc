#include "client/cli/artifact_download.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/job_reference.h"
#include "engine/base/env.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"

namespace tandem::cli {
namespace {

// The end of the message for a download with a wrong content. An older file at the path stays.
constexpr char kNotKept[] =
    ", so the daemon's file has changed; it was not kept, fetch other files by their names";

constexpr char kLocalFile[] = "tandem/local-file";

// Returns an error about this machine's files, which is not the daemon's fault.
absl::Status LocalError(absl::string_view message) {
  absl::Status status = absl::FailedPreconditionError(message);
  status.SetPayload(kLocalFile, absl::Cord());
  return status;
}

}  // namespace

bool IsLocalFileError(const absl::Status& status) { return status.GetPayload(kLocalFile).has_value(); }

absl::StatusOr<std::string> FolderNameOf(const v1::Job& job) {
  const std::string id = JobId(job.name());
  if (!id.empty() && id[0] != '.' && id.find('/') == std::string::npos) return id;
  return absl::InvalidArgumentError(absl::StrCat("cannot create a folder for the job \"", id,
                                                 "\": the id is not a file name; report this fault"));
}

absl::StatusOr<std::string> ArtifactPath(const std::string& folder, const std::string& artifact) {
  const std::filesystem::path name(artifact);
  bool inside = !artifact.empty() && !name.is_absolute() && name.has_filename();
  for (const auto& part : name) inside = inside && part != ".." && part != ".";
  for (const char c : artifact) inside = inside && static_cast<unsigned char>(c) >= 0x20;
  if (!inside)
    return absl::InvalidArgumentError(
        "cannot write an artifact: its name leads out of the folder; fetch other files by their names");
  return (std::filesystem::path(folder) / name).string();
}

bool IsCheckpointModel(absl::string_view artifact) {
  return absl::ConsumePrefix(&artifact, "model-") && absl::ConsumeSuffix(&artifact, ".safetensors") &&
         !artifact.empty() && std::all_of(artifact.begin(), artifact.end(), absl::ascii_isdigit);
}

absl::StatusOr<bool> IsDownloaded(client::Client& client, const std::string& job,
                                  const v1::Artifact& artifact, const std::string& path,
                                  client::StreamObserver& observer) {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) return false;
  std::string expected = artifact.sha256();
  if (expected.empty()) {
    bool is_other = false;
    Sha256 sum;
    const absl::Status read = client.ReadArtifact(
        job, artifact.name(), 0, observer, [&](const v1::ReadArtifactResponse& piece) -> absl::Status {
          is_other = piece.size_bytes() != size;
          if (is_other) return absl::CancelledError("the files have other sizes");
          sum.Add(piece.data());
          return absl::OkStatus();
        });
    if (is_other) return false;
    TANDEM_RETURN_IF_ERROR(read);
    TANDEM_ASSIGN_OR_RETURN(expected, sum.Finish());
  } else if (size != artifact.size_bytes()) {
    return false;
  }
  return Sha256OfFile(path).value_or("") == expected;
}

absl::Status DownloadArtifact(client::Client& client, const std::string& job, const v1::Artifact& artifact,
                              const std::string& path, client::StreamObserver& observer,
                              const std::function<void(int64_t bytes, int64_t size)>& on_bytes) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) {
    return LocalError(absl::StrCat("cannot create the folder ",
                                   std::filesystem::path(path).parent_path().string(), ": ",
                                   error.message()));
  }
  int64_t bytes = 0, size = artifact.size_bytes();
  // Without a checksum, the file may be newer than the record, and only the daemon knows its size.
  const bool recorded = !artifact.sha256().empty();
  const char* const who = recorded ? "the job's record" : "the daemon's answer";
  const auto transfer = [&](WritableFile& file) -> absl::Status {
    Sha256 sum;
    TANDEM_RETURN_IF_ERROR(client.ReadArtifact(
        job, artifact.name(), 0, observer, [&](const v1::ReadArtifactResponse& piece) -> absl::Status {
          if (!recorded && piece.offset() == 0) size = piece.size_bytes();
          if (!recorded && piece.size_bytes() != size) {
            return absl::DataLossError(absl::StrCat("cannot finish ", artifact.name(),
                                                    ": the daemon's file changed from ", size, " to ",
                                                    piece.size_bytes(), " bytes meanwhile; fetch it again"));
          }
          bytes += static_cast<int64_t>(piece.data().size());
          if (bytes > size) {
            return absl::DataLossError(absl::StrCat("cannot fetch ", artifact.name(),
                                                    ": it has more than the ", size, " bytes of ", who,
                                                    kNotKept));
          }
          sum.Add(piece.data());
          on_bytes(bytes, size);
          const absl::Status written = file.Append(piece.data());
          return written.ok() ? written : LocalError(written.message());
        }));
    if (bytes != size) {
      return absl::DataLossError(absl::StrCat("cannot fetch ", artifact.name(), ": it has ", bytes,
                                              " bytes, but ", who, " has ", size, kNotKept));
    }
    TANDEM_ASSIGN_OR_RETURN(const std::string digest, sum.Finish());
    if (recorded && digest != artifact.sha256()) {
      return absl::DataLossError(absl::StrCat("cannot fetch ", artifact.name(), ": it has the SHA-256 ",
                                              digest, ", but the job's record has ", artifact.sha256(),
                                              kNotKept));
    }
    return absl::OkStatus();
  };
  absl::Status transferred;
  const absl::Status written =
      WriteFileAtomically(Env::Real(), path, [&](WritableFile& file) { return transferred = transfer(file); },
                          {.durable = AtomicWrite::Durable::kContent});
  if (!transferred.ok()) return transferred;
  return written.ok() ? written : LocalError(written.message());
}

}  // namespace tandem::cli
