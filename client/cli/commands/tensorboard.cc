#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/job_reference.h"
#include "client/cli/stream_notes.h"
#include "client/cli/tensorboard_mirror.h"

namespace tandem::cli {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(2);

struct TensorBoardOptions {
  std::string folder;
  std::vector<std::string> jobs;
  bool once = false;
};

absl::StatusOr<std::vector<v1::Job>> WantedJobs(client::Client& client,
                                                const std::vector<std::string>& wanted) {
  if (wanted.empty()) return client.ListJobs({});
  std::vector<v1::Job> jobs;
  for (const std::string& reference : wanted) {
    absl::StatusOr<v1::Job> job = FindJob(client, reference);
    if (!job.ok()) return job.status();
    jobs.push_back(*std::move(job));
  }
  return jobs;
}

int RunTensorBoard(Session& session, const TensorBoardOptions& options) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  session.terminal().CatchInterrupt();
  // The newest event of each job that is in the job's file.
  std::map<std::string, int64_t> mirrored;
  // The files of running jobs. Other jobs may be thousands, more than may be open.
  std::map<std::string, std::unique_ptr<client::TensorBoardFile>> files;
  // The jobs whose files cannot be written.
  std::map<std::string, bool> failed;
  int exit_code = kSucceeded;
  bool is_noted = false;
  const auto is_lost = [&](const absl::Status& status) {
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return false;
    if (!std::exchange(is_noted, true)) {
      session.terminal().Err(absl::StrCat("cannot reach the daemon: ", status.message(), "; retrying\n"));
    }
    return true;
  };
  while (true) {
    absl::StatusOr<std::vector<v1::Job>> jobs = WantedJobs(**client, options.jobs);
    if (is_lost(jobs.status())) {
      // The next round may find the daemon.
      jobs = std::vector<v1::Job>();
    } else if (!jobs.ok()) {
      return session.Fail(jobs.status());
    } else {
      is_noted = false;
    }
    bool ended = !options.jobs.empty() && !is_noted;
    for (const v1::Job& job : *jobs) {
      ended = ended && job.has_end_time();
      const auto known = mirrored.find(job.name());
      if (known != mirrored.end() && known->second >= job.last_sequence()) continue;
      std::unique_ptr<client::TensorBoardFile>& file = files[job.name()];
      const absl::StatusOr<std::string> path = MirrorJob(session, **client, job, options.folder, file);
      if (!path.ok() || job.state() != v1::JOB_STATE_RUNNING) files.erase(job.name());
      if (session.terminal().Interrupted()) return kSucceeded;
      // A user may delete a job between the list and the copy.
      if (absl::IsNotFound(path.status()) && options.jobs.empty()) continue;
      if (is_lost(path.status())) {
        ended = false;
        break;
      }
      if (!path.ok()) {
        // The other jobs' files stay current.
        if (!std::exchange(failed[job.name()], true)) exit_code = session.Fail(path.status());
        mirrored[job.name()] = job.last_sequence();
        continue;
      }
      if (known == mirrored.end()) session.terminal().Out(absl::StrCat(*path, "\n"));
      mirrored[job.name()] = job.last_sequence();
    }
    if ((options.once && !is_noted) || ended) return exit_code;
    for (absl::Duration waited; waited < kInterval; waited += absl::Milliseconds(100)) {
      if (session.terminal().Interrupted()) return kSucceeded;
      absl::SleepFor(absl::Milliseconds(100));
    }
  }
}

}  // namespace

void AddTensorBoard(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<TensorBoardOptions>();
  const Command command = app.AddCommand(
      "tensorboard", "Copy the curves of jobs to TensorBoard event files, and keep the files current");
  command.AddOption("DIR", options->folder, "The folder for TensorBoard's --logdir").Required();
  command.AddOption("JOB", options->jobs, "The jobs, until they end (default: all jobs, until Ctrl-C)");
  command.AddFlag("--once", options->once, "End when the files are current");
  command.Action([options, &session, &exit_code] { exit_code = RunTensorBoard(session, *options); });
}

}  // namespace tandem::cli
