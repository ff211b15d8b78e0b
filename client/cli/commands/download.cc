#include <algorithm>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/artifact_download.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/progress_line.h"
#include "client/cli/stream_notes.h"
#include "client/cli/tensorboard_mirror.h"
#include "engine/base/spelling.h"
#include "proto/job_file/enum_names.h"
#include "proto/job_file/scalar_text.h"

namespace tandem::cli {
namespace {

struct DownloadOptions {
  std::string job;
  std::vector<std::string> artifacts;
  std::string folder;
  std::string tensorboard;
  bool force = false;
};

// Returns the requested artifacts of the job, or all if none was named.
absl::StatusOr<std::vector<v1::Artifact>> Choose(const v1::Job& job, const std::vector<std::string>& wanted) {
  std::vector<v1::Artifact> chosen(job.artifacts().begin(), job.artifacts().end());
  const bool wants_checkpoints =
      !wanted.empty() && std::all_of(wanted.begin(), wanted.end(), IsCheckpointModel);
  if (chosen.empty() && !wants_checkpoints) {
    return absl::NotFoundError(
        absl::StrCat(JobId(job.name()), " is ", ShortEnumName(job.state()), " and has made no files",
                     job.has_end_time() ? "" : " yet; `tandem watch` shows when it ends"));
  }
  if (wanted.empty()) return chosen;
  std::vector<std::string> names;
  for (const v1::Artifact& artifact : job.artifacts()) names.push_back(artifact.name());
  chosen.clear();
  for (const std::string& name : wanted) {
    if (IsCheckpointModel(name)) {
      chosen.emplace_back().set_name(name);
      continue;
    }
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return absl::NotFoundError(
          absl::StrCat(JobId(job.name()), " has no file ", Quoted(name), "; ", SpellingHint(name, names)));
    }
    chosen.push_back(job.artifacts(static_cast<int>(found - names.begin())));
  }
  return chosen;
}

// Shows the progress of a file on standard output. A terminal redraws the line.
class DownloadLine {
 public:
  DownloadLine(Session& session, const v1::Artifact& artifact)
      : session_(session),
        artifact_(artifact),
        shown_(session.terminal().Interactive() && !session.structured()) {}

  void Update(int64_t bytes, int64_t size) {
    const absl::Time now = session_.terminal().Now();
    if (!shown_ || now - drawn_ < absl::Milliseconds(100)) return;
    drawn_ = now;
    const double share = size > 0 ? static_cast<double>(bytes) / size : 1;
    session_.terminal().Out(absl::StrCat(
        "\r",
        Truncate(absl::StrCat(artifact_.name(), "  ",
                              ProgressBar(share, 20, session_.terminal().Unicode(), session_.style()), "  ",
                              FormatBytes(bytes), " of ", FormatBytes(size)),
                 session_.terminal().Width() - 1),
        "\x1b[K"));
  }

  void Erase() {
    if (shown_ && drawn_ != absl::InfinitePast()) session_.terminal().Out("\r\x1b[K");
  }

 private:
  Session& session_;
  const v1::Artifact& artifact_;
  const bool shown_;
  absl::Time drawn_ = absl::InfinitePast();
};

int RunDownload(Session& session, const DownloadOptions& options) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const absl::StatusOr<v1::Job> job = FindJob(**client, options.job);
  if (!job.ok()) return session.Fail(job.status());
  if (!options.tensorboard.empty()) {
    std::unique_ptr<client::TensorBoardFile> file;
    const absl::StatusOr<std::string> path = MirrorJob(session, **client, *job, options.tensorboard, file);
    if (absl::IsCancelled(path.status()) && session.terminal().Interrupted()) return kDetached;
    if (!path.ok()) return session.Fail(path.status());
    session.terminal().Out(absl::StrCat(*path, "\n"));
    return kSucceeded;
  }
  absl::StatusOr<std::vector<v1::Artifact>> artifacts = Choose(*job, options.artifacts);
  if (!artifacts.ok()) return session.Fail(artifacts.status());
  const absl::StatusOr<std::string> folder = options.folder.empty() ? FolderNameOf(*job) : options.folder;
  if (!folder.ok()) return session.Fail(folder.status());
  struct Target {
    std::string path;
    bool there;
  };
  std::vector<Target> targets;
  for (const v1::Artifact& artifact : *artifacts) {
    const absl::StatusOr<std::string> path = ArtifactPath(*folder, artifact.name());
    if (!path.ok()) return session.Fail(path.status());
    StreamNotes observer(session.terminal());
    // With --force, a file without a checksum is replaced unread.
    const absl::StatusOr<bool> there = options.force && artifact.sha256().empty()
                                           ? false
                                           : IsDownloaded(**client, job->name(), artifact, *path, observer);
    if (absl::IsCancelled(there.status()) && session.terminal().Interrupted()) return kDetached;
    if (!there.ok()) return session.Fail(there.status());
    targets.push_back({*path, *there});
    // The path may be the submitted job file. If this user cannot see the path, writing fails too, with a
    // clear error.
    std::error_code unseen;
    if (!targets.back().there && !options.force && std::filesystem::exists(*path, unseen)) {
      return session.Fail(absl::AlreadyExistsError(
          absl::StrCat("cannot download to ", *path,
                       ": another file is there; --force replaces it, --to DIR names another folder")));
    }
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    v1::Artifact& artifact = (*artifacts)[i];
    const auto& [path, there] = targets[i];
    int64_t size = artifact.size_bytes();
    if (there) {
      std::error_code unseen;
      size = static_cast<int64_t>(std::filesystem::file_size(path, unseen));
    } else {
      DownloadLine line(session, artifact);
      StreamNotes observer(session.terminal());
      const absl::Status status =
          DownloadArtifact(**client, job->name(), artifact, path, observer, [&](int64_t bytes, int64_t all) {
            size = bytes;
            line.Update(bytes, all);
          });
      line.Erase();
      if (absl::IsCancelled(status) && session.terminal().Interrupted()) return kDetached;
      if (!status.ok()) {
        const int code = session.Fail(status);
        return IsLocalFileError(status) ? kOutputLost : code;
      }
    }
    artifact.set_size_bytes(size);
    if (!session.structured()) {
      session.terminal().Out(
          absl::StrCat(path, "  ", FormatBytes(size), there ? "  already there" : "", "\n"));
    }
  }
  if (session.structured()) session.PrintList(*artifacts);
  return kSucceeded;
}

}  // namespace

void AddDownload(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<DownloadOptions>();
  const Command command = app.AddCommand("download", "Fetch the trained model and the other files of a job");
  command.AddOption("JOB", options->job, "The job's id, or the beginning of it").Required();
  const Option artifacts =
      command.AddOption("ARTIFACT", options->artifacts,
                        "The files (default: all); model-STEP.safetensors: the model of a checkpoint");
  const Option folder =
      command.AddOption("--to", options->folder, "The folder to write to (default: the job's id)")
          .ValueName("DIR");
  const Option force = command.AddFlag("--force", options->force, "Replace other files with the same names");
  command
      .AddOption("--tensorboard", options->tensorboard,
                 "Instead: write the job's curves, up to now, to a TensorBoard event file in this folder")
      .ValueName("DIR")
      .Excludes(artifacts)
      .Excludes(folder)
      .Excludes(force);
  command.Action([options, &session, &exit_code] { exit_code = RunDownload(session, *options); });
}

}  // namespace tandem::cli
