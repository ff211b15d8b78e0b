#include "client/cli/artifact_download.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/lib/sha256.h"

namespace tandem::cli {
namespace {

// The message for a file that is not the job's. Files from before stay.
constexpr char kNotKept[] =
    ": the daemon's file has changed since the job made it, and was not kept here. Fetch others by their "
    "names.";

constexpr char kLocalFile[] = "tandem/local-file";

// Returns an error about this machine's files, which is not the daemon's fault.
absl::Status LocalError(absl::string_view message) {
  absl::Status status = absl::FailedPreconditionError(message);
  status.SetPayload(kLocalFile, absl::Cord());
  return status;
}

absl::Status FileError(const char* what, const std::string& path) {
  return LocalError(absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

// A file that the destructor removes unless PutInPlace was called.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path)
      : path_(path),
        partial_(path + ".part"),
        file_(open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {}
  ~PartialFile() {
    if (file_ < 0) return;
    close(file_);
    unlink(partial_.c_str());
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  absl::Status status() const { return file_ < 0 ? FileError("write", partial_) : absl::OkStatus(); }

  absl::Status Append(absl::string_view data) {
    while (!data.empty()) {
      const ssize_t count = write(file_, data.data(), data.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return FileError("write", partial_);
      data.remove_prefix(count);
    }
    return absl::OkStatus();
  }

  absl::Status PutInPlace() {
    if (fsync(file_) != 0) return FileError("write", partial_);
    const int closed = close(file_);
    file_ = -1;
    if (closed == 0 && std::rename(partial_.c_str(), path_.c_str()) == 0) return absl::OkStatus();
    const absl::Status error = FileError("write", path_);
    unlink(partial_.c_str());
    return error;
  }

 private:
  const std::string path_;
  const std::string partial_;
  int file_;
};

}  // namespace

bool IsLocalFileError(const absl::Status& status) { return status.GetPayload(kLocalFile).has_value(); }

absl::StatusOr<std::string> ArtifactPath(const std::string& folder, const std::string& artifact) {
  const std::filesystem::path name(artifact);
  bool inside = !artifact.empty() && !name.is_absolute() && name.has_filename();
  for (const auto& part : name) inside = inside && part != ".." && part != ".";
  for (const char c : artifact) inside = inside && static_cast<unsigned char>(c) >= 0x20;
  if (!inside)
    return absl::InvalidArgumentError("an artifact's name leads out of the folder; it is not written");
  return (std::filesystem::path(folder) / name).string();
}

bool IsDownloaded(const std::string& path, const v1::Artifact& artifact) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error || static_cast<int64_t>(size) != artifact.size_bytes() || artifact.sha256().empty()) return false;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return false;
  client::Sha256 sum;
  char buffer[65536];
  while (const size_t count = std::fread(buffer, 1, sizeof(buffer), file.get())) sum.Update({buffer, count});
  return absl::BytesToHexString(sum.Finish()) == artifact.sha256();
}

absl::Status DownloadArtifact(client::Client& client, const std::string& job, const v1::Artifact& artifact,
                              const std::string& path, client::StreamObserver& observer,
                              const std::function<void(int64_t)>& on_bytes) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) {
    return LocalError(absl::StrCat("cannot make the folder ",
                                   std::filesystem::path(path).parent_path().string(), ": ",
                                   error.message()));
  }
  PartialFile file(path);
  if (!file.status().ok()) return file.status();
  client::Sha256 sum;
  int64_t bytes = 0, size = artifact.size_bytes();
  // Without a checksum, the file may be newer than the record, and only the daemon knows its size.
  const bool recorded = !artifact.sha256().empty();
  const char* const who = recorded ? "the job's record" : "the daemon";
  const absl::Status status = client.ReadArtifact(
      job, artifact.name(), 0, observer, [&](const v1::ReadArtifactResponse& piece) -> absl::Status {
        if (!recorded && piece.offset() == 0) size = piece.size_bytes();
        if (!recorded && piece.size_bytes() != size) {
          return absl::DataLossError(absl::StrCat(artifact.name(), " had ", size, " bytes, and now has ",
                                                  piece.size_bytes(),
                                                  ": it was written anew meanwhile. Fetch it again."));
        }
        bytes += static_cast<int64_t>(piece.data().size());
        if (bytes > size) {
          return absl::DataLossError(absl::StrCat(artifact.name(), " has more bytes than the ", size,
                                                  " that ", who, " says", kNotKept));
        }
        sum.Update(piece.data());
        on_bytes(bytes);
        return file.Append(piece.data());
      });
  if (!status.ok()) return status;
  if (bytes != size) {
    return absl::DataLossError(
        absl::StrCat(artifact.name(), " has ", bytes, " bytes; ", who, " says ", size, kNotKept));
  }
  const std::string digest = absl::BytesToHexString(sum.Finish());
  if (recorded && digest != artifact.sha256()) {
    return absl::DataLossError(absl::StrCat(artifact.name(), " has the SHA-256 ", digest,
                                            "; the job's record says ", artifact.sha256(), kNotKept));
  }
  return file.PutInPlace();
}

}  // namespace tandem::cli
