#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/artifact_download.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/printable.h"
#include "client/cli/stream_notes.h"
#include "engine/base/env.h"

namespace tandem::cli {
namespace {

struct ExportOptions {
  std::string job;
  std::string path;
  std::string artifact;
  bool force = false;
};

// Checks that the file may be written. As root, a rename would replace a device such as /dev/null.
absl::Status CheckFree(const std::string& path, bool force) {
  std::error_code unseen;
  const std::filesystem::file_status found = std::filesystem::status(path, unseen);
  if (!std::filesystem::exists(found)) return absl::OkStatus();
  if (!std::filesystem::is_regular_file(found)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot export to ", path, ": it is not a regular file; name another file"));
  }
  if (force) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "cannot export to ", path, ": another file is there; --force replaces it, or name another file"));
}

int RunExport(Session& session, const ExportOptions& options) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const absl::StatusOr<v1::Job> job = FindJob(**client, options.job);
  if (!job.ok()) return session.Fail(job.status());
  std::string path = options.path;
  if (path.empty()) {
    const absl::StatusOr<std::string> name = FolderNameOf(*job);
    if (!name.ok()) return session.Fail(name.status());
    path = absl::StrCat(*name, ".onnx");
  }
  if (const absl::Status free = CheckFree(path, options.force); !free.ok()) return session.Fail(free);
  v1::ExportModelRequest request;
  request.set_name(job->name());
  request.set_artifact(options.artifact);
  StreamNotes observer(session.terminal());
  int64_t bytes = 0;
  absl::Status transferred, appended;
  const absl::Status written = WriteFileAtomically(Env::Real(), path, [&](WritableFile& file) {
    return transferred = (*client)->ExportModel(request, observer, [&](absl::string_view piece) {
      bytes += static_cast<int64_t>(piece.size());
      return appended = file.Append(piece);
    });
  });
  if (absl::IsCancelled(transferred) && session.terminal().Interrupted()) return kDetached;
  if (!written.ok()) {
    const int code = session.Fail(written);
    return transferred.ok() || !appended.ok() ? kOutputLost : code;
  }
  if (session.structured()) {
    v1::Artifact artifact;
    artifact.set_name(path);
    artifact.set_size_bytes(bytes);
    session.PrintList(std::vector<v1::Artifact>{std::move(artifact)});
  } else {
    session.terminal().Out(Printable(absl::StrCat(path, "  ", FormatBytes(bytes), "\n")));
  }
  return kSucceeded;
}

}  // namespace

void AddExport(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  const Command command = app.AddCommand("export", "Write a job's model as an ONNX file, for other programs");
  command.AddOption("JOB", options->job, "The job's id, or the beginning of it").Required();
  command.AddOption("FILE", options->path, "The file to write (default: the job's id and .onnx)");
  command
      .AddOption("--artifact", options->artifact,
                 "The job's model (default: model.safetensors); model-STEP.safetensors: that of a checkpoint")
      .ValueName("NAME");
  command.AddFlag("--force", options->force, "Replace another file");
  command.Action([options, &session, &exit_code] { exit_code = RunExport(session, *options); });
}

}  // namespace tandem::cli
