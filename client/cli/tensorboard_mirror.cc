#include "client/cli/tensorboard_mirror.h"

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/artifact_download.h"
#include "client/cli/stream_notes.h"
#include "client/lib/tensorboard_file.h"
#include "engine/base/status_macros.h"

namespace tandem::cli {
namespace {

// Also stops a stream when the copy is complete or cannot be written.
class UntilComplete : public StreamNotes {
 public:
  UntilComplete(Session& session, const absl::Status& written, const bool& complete)
      : StreamNotes(session.terminal()), written_(written), complete_(complete) {}

  bool KeepGoing() override { return StreamNotes::KeepGoing() && written_.ok() && !complete_; }

 private:
  const absl::Status& written_;
  const bool& complete_;
};

}  // namespace

absl::StatusOr<std::string> MirrorJob(Session& session, client::Client& client, const v1::Job& job,
                                      const std::string& folder,
                                      std::unique_ptr<client::TensorBoardFile>& file) {
  const absl::StatusOr<std::string> id = FolderNameOf(job);
  if (!id.ok()) return id.status();
  const std::filesystem::path own = std::filesystem::path(folder) / *id;
  std::error_code error;
  std::filesystem::create_directories(own, error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot create the folder ", own.string(), ": ", error.message()));
  }
  const std::string path =
      (own / absl::StrCat("events.out.tfevents.", job.create_time().seconds(), ".tandem")).string();
  // Somebody may have removed the open file.
  if (file == nullptr || !std::filesystem::exists(path, error)) {
    // TensorBoard reads texts as Markdown: four spaces start a block of code.
    const std::string settings = absl::StrCat(
        "    ", absl::StrReplaceAll(Structured(OutputFormat::kYaml, job.spec()), {{"\n", "\n    "}}));
    TANDEM_ASSIGN_OR_RETURN(file, client::TensorBoardFile::Open(path, job, settings));
  }
  if (file->last_sequence() > job.last_sequence()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot continue ", path,
        ": the file has later events than the job, as after the restore of a backup; move the file away"));
  }
  absl::Status written;
  bool complete = file->last_sequence() >= job.last_sequence();
  if (!complete) {
    UntilComplete observer(session, written, complete);
    const absl::Status watched =
        client.WatchJob(job.name(), file->last_sequence(), observer, [&](const v1::JobEvent& event) {
          if (complete || !written.ok()) return;
          written = file->Add(event);
          complete = event.sequence() >= job.last_sequence();
        });
    if (!written.ok()) return written;
    if (!complete && !watched.ok()) return watched;
  }
  if (absl::Status status = file->Sync(); !status.ok()) return status;
  return path;
}

}  // namespace tandem::cli
