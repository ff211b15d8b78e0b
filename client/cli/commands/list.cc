#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_progress.h"
#include "client/cli/job_reference.h"
#include "client/cli/print_table.h"
#include "client/cli/waiting_text.h"
#include "client/lib/main_metric.h"
#include "engine/base/spelling.h"
#include "proto/job_file/enum_names.h"
#include "proto/job_file/scalar_text.h"

namespace tandem::cli {
namespace {

struct ListOptions {
  std::vector<std::string> states;
  std::string order;
  int limit = 20;
  bool all = false;
};

std::string Epochs(const v1::Job& job) {
  const int64_t done = job.has_last_epoch() ? job.last_epoch().epoch() : 0;
  // A job with a number of steps has its number of epochs once it trains.
  const int64_t all =
      job.spec().training().steps() > 0 ? job.progress().epochs() : job.spec().training().epochs();
  return absl::StrCat(done, "/", all == 0 ? "-" : absl::StrCat(all));
}

// Returns the main metric of the last validation, such as "acc 0.9812". Jobs may have different metrics.
std::string Validation(const v1::Job& job) {
  if (!job.summary().has_validation() && !job.last_epoch().has_validation()) return "-";
  // The finished network may have another validation after its last epoch.
  const v1::Evaluation& evaluation =
      job.summary().has_validation() ? job.summary().validation() : job.last_epoch().validation();
  const std::string metric = client::MainMetric(evaluation);
  return metric.empty()
             ? absl::StrCat("loss ", FormatMeasure(evaluation.loss()))
             : absl::StrCat(ShortMetricName(metric), " ", FormatMeasure(evaluation.metrics().at(metric)));
}

// Returns the time for which the job has held its devices, as JobEnding counts it.
std::string RunTime(const v1::Job& job, absl::Time now) {
  absl::Duration held = absl::Seconds(job.run_seconds());
  if (HoldsDevices(job.state()) && job.has_lease_time()) {
    held += std::max(absl::ZeroDuration(), now - FromProto(job.lease_time()));
  }
  return held > absl::ZeroDuration() ? FormatElapsed(held) : "-";
}

std::string Devices(const v1::Job& job) {
  return job.devices().empty()
             ? "-"
             : absl::StrJoin(job.devices(), ",", [](std::string* out, const std::string& device) {
                 out->append(ShortName(device));
               });
}

std::string Message(const v1::Job& job, absl::Time now) {
  if (job.has_waiting()) return WaitingText(job.waiting(), now);
  // A row must be a single line.
  return absl::StrReplaceAll(job.message(), {{"\n", " "}});
}

int RunList(Session& session, const ListOptions& options) {
  client::ListJobsOptions request;
  const int limit = options.all ? 0 : options.limit;
  // Requests one more job than shown, to learn whether there are more.
  request.limit = limit == 0 ? 0 : limit + 1;
  request.order_by = options.order;
  for (const std::string& given : options.states) {
    for (const absl::string_view name : absl::StrSplit(given, ',')) {
      const auto* value = FindEnumValue(*v1::JobState_descriptor(), name);
      if (value == nullptr || value->number() == 0) {
        return session.Fail(absl::InvalidArgumentError(
            absl::StrCat("--state: unknown state ", Quoted(name), "; ",
                         SpellingHint(name, ShortEnumNames(*v1::JobState_descriptor())))));
      }
      request.states.push_back(static_cast<v1::JobState>(value->number()));
    }
  }
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<std::vector<v1::Job>> jobs = (*client)->ListJobs(request);
  if (!jobs.ok()) return session.Fail(jobs.status());
  const bool more = limit > 0 && jobs->size() > static_cast<size_t>(limit);
  if (more) jobs->resize(limit);
  std::vector<Table::Column> columns = {
      {"JOB"}, {"USER"}, {"STATE"}, {"EPOCHS", true}, {"VALIDATION", true}, {"TIME", true}, {"AGE", true}};
  if (session.wide()) {
    columns.insert(columns.end(), {{"REPLICAS", true}, {"DEVICES"}, {"MEMORY", true}, {"MESSAGE"}});
  }
  const auto row = [&session, now = session.terminal().Now()](const v1::Job& job) {
    std::vector<std::string> cells = {
        JobId(job.name()), job.user(),        ColoredState(job.state(), session.style()),   Epochs(job),
        Validation(job),   RunTime(job, now), FormatAge(now - FromProto(job.create_time()))};
    if (session.wide()) {
      cells.insert(cells.end(),
                   {absl::StrCat(std::max(1, job.spec().replicas().count())), Devices(job),
                    job.planned_memory_bytes() > 0 ? FormatBytes(job.planned_memory_bytes()) : "-",
                    Message(job, now)});
    }
    return cells;
  };
  const int code =
      PrintTable(session, std::move(jobs),
                 options.states.empty() ? "no jobs yet; `tandem init lenet > job.yaml` writes one to submit\n"
                                        : "no jobs in that state\n",
                 columns, row);
  // Not a part of the table, because programs may read the table.
  if (more && !session.structured()) {
    session.terminal().Err(absl::StrCat("... the first ", limit, "; --all shows more\n"));
  }
  return code;
}

}  // namespace

void AddList(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<ListOptions>();
  const Command command = app.AddCommand("list", "List jobs, the newest first");
  command.AddOption("--state", options->states, "Only jobs in these states, such as running,queued")
      .ValueName("STATE")
      .OneValueEach();
  command.AddOption("--limit", options->limit, "The largest number of jobs; 0: all")
      .ShowDefault()
      .ValueName("N")
      .Range(0, 1'000'000);
  command.AddFlag("--all", options->all, "List all jobs");
  command.AddOption("--order", options->order, "create_time or name, optionally followed by \" desc\"")
      .ValueName("ORDER")
      .OneOf({"create_time", "create_time desc", "name", "name desc"});
  command.Action([options, &session, &exit_code] { exit_code = RunList(session, *options); });
}

}  // namespace tandem::cli
