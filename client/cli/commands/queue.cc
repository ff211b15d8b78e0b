#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/table.h"
#include "client/cli/waiting_text.h"
#include "proto/job_file/enum_names.h"

namespace tandem::cli {
namespace {

struct QueueOptions {
  int limit = 50;
  bool users = false;
};

std::string Priority(const v1::QueuedJob& job) {
  return job.raised_by() > 0 ? absl::StrCat(job.priority(), "+", job.raised_by())
                             : absl::StrCat(job.priority());
}

std::string AtMost(int used, int most) {
  return most > 0 ? absl::StrCat(used, "/", most) : absl::StrCat(used);
}

std::string JobsTable(Session& session, const v1::ListQueueResponse& queue) {
  std::vector<Table::Column> columns = {{"#", true},       {"JOB"},   {"USER"},  {"PRIORITY", true},
                                        {"DEVICES", true}, {"START"}, {"REASON"}};
  if (session.wide()) columns.insert(columns.end(), {{"TAKES", true}, {"AGE", true}, {"MESSAGE"}});
  Table table(columns);
  const absl::Time now = session.terminal().Now();
  for (const v1::QueuedJob& job : queue.jobs()) {
    std::vector<std::string> row = {
        // A cluster has its own order.
        job.waiting().position() > 0 ? absl::StrCat(job.waiting().position()) : "-",
        JobId(job.job()),
        job.user(),
        Priority(job),
        absl::StrCat(job.devices()),
        FormatStart(job.waiting(), now),
        session.wide() ? ShortEnumName(job.waiting().reason()) : job.waiting().message()};
    if (session.wide()) {
      row.insert(row.end(), {job.expected_seconds() > 0
                                 ? absl::StrCat("~", FormatElapsed(absl::Seconds(job.expected_seconds())))
                                 : "-",
                             FormatAge(now - FromProto(job.create_time())), job.waiting().message()});
    }
    table.AddRow(std::move(row));
  }
  return table.Render(session.style());
}

std::string UsersTable(Session& session, const v1::ListQueueResponse& queue) {
  Table table({{"USER"}, {"USED", true}, {"DEVICES", true}, {"QUEUED", true}});
  for (const v1::UserUsage& user : queue.users()) {
    table.AddRow({user.user(), FormatElapsed(absl::Seconds(user.device_seconds())),
                  AtMost(user.devices(), user.max_devices()),
                  AtMost(user.queued_jobs(), user.max_queued_jobs())});
  }
  return table.Render(session.style());
}

int RunQueue(Session& session, const QueueOptions& options) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<v1::ListQueueResponse> queue = (*client)->ListQueue(options.limit);
  if (!queue.ok()) return session.Fail(queue.status());
  session.MakeShowable(&*queue);
  if (session.structured()) return session.Print(*queue);
  if (options.users) {
    session.terminal().Out(queue->users().empty() ? "no user has had a job yet\n"
                                                  : UsersTable(session, *queue));
    return kSucceeded;
  }
  if (queue->jobs().empty()) {
    session.terminal().Out("no jobs wait\n");
    return kSucceeded;
  }
  session.terminal().Out(JobsTable(session, *queue));
  if (queue->total_size() > queue->jobs_size()) {
    session.terminal().Out(session.style().Dim(absl::StrCat("the first ", queue->jobs_size(), " of ",
                                                            queue->total_size(), "; --limit shows more\n")));
  }
  return kSucceeded;
}

}  // namespace

void AddQueue(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<QueueOptions>();
  const Command command = app.AddCommand(
      "queue", "List waiting jobs, next job first, with their reasons, estimated starts and latest starts");
  command.AddOption("--limit", options->limit, "The largest number of jobs")
      .ShowDefault()
      .ValueName("N")
      .Range(1, 10'000);
  command.AddFlag("--users", options->users,
                  "List users instead, with their recent device time, devices and queued jobs");
  command.Action([options, &session, &exit_code] { exit_code = RunQueue(session, *options); });
}

}  // namespace tandem::cli
