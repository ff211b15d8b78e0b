#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/change_each.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_reference.h"
#include "client/cli/job_source.h"
#include "client/cli/live_block.h"
#include "client/cli/print_table.h"
#include "client/cli/request_id.h"
#include "client/cli/stream_notes.h"
#include "client/cli/sweep_table.h"
#include "client/lib/status_details.h"
#include "client/lib/sweep_file.h"
#include "engine/base/spelling.h"
#include "proto/job_file/scalar_text.h"

namespace tandem::cli {
namespace {

struct SweepOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::vector<std::string> grid;
  std::vector<std::string> random;
  int samples = 0;
  uint64_t seed = 0;
  int max_running = 0;
  std::string objective;
  std::string name;
  std::string request_id;
  std::string weights;
  std::string on;
  bool prune = false;
  bool wait = false;
  bool check = false;
};

std::string SweepId(absl::string_view name) { return std::string(absl::StripPrefix(name, "sweeps/")); }

int ExitCodeOfSweep(v1::SweepState state) {
  switch (state) {
    case v1::SWEEP_STATE_FAILED:
      return kJobFailed;
    case v1::SWEEP_STATE_CANCELLED:
    case v1::SWEEP_STATE_CANCELLING:
      return kCancelled;
    default:
      return kSucceeded;
  }
}

// Returns the sweep with the name "sweeps/ID" or "ID", or the only sweep whose id begins with `reference`.
// For "BEGINNING@", returns the newest sweep whose id begins with BEGINNING. The sweep has its results.
absl::StatusOr<v1::Sweep> FindSweep(client::Client& client, absl::string_view reference) {
  std::string id = SweepId(absl::StripSuffix(reference, "/"));
  const bool newest = absl::EndsWith(id, "@");
  if (newest) {
    id.pop_back();
  } else {
    absl::StatusOr<v1::Sweep> sweep = client.GetSweep(absl::StrCat("sweeps/", id));
    if (sweep.ok() || !absl::IsNotFound(sweep.status())) return sweep;
  }
  // The newest sweep is the first.
  const absl::StatusOr<std::vector<v1::Sweep>> sweeps = client.ListSweeps(/*limit=*/0);
  if (!sweeps.ok()) return sweeps.status();
  std::vector<std::string> ids, matches;
  for (const v1::Sweep& one : *sweeps) {
    ids.push_back(SweepId(one.name()));
    if (absl::StartsWith(ids.back(), id)) matches.push_back(ids.back());
  }
  if (matches.size() == 1 || (newest && !matches.empty()))
    return client.GetSweep(absl::StrCat("sweeps/", matches.front()));
  if (matches.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        matches.size(), " sweeps begin with `", id, "`: ", matches[0], ", ", matches[1],
        matches.size() > 2 ? ", ..." : "", "; write more of the id, or `", id, "@` for the newest"));
  }
  if (id.empty()) return absl::NotFoundError("there are no sweeps; `tandem sweep FILE` sends a sweep");
  const std::string nearest = NearestName(id, ids);
  return absl::NotFoundError(absl::StrCat("no sweep's id begins with ", Quoted(id), "; ",
                                          nearest.empty() ? "`tandem sweep list` shows the sweeps"
                                                          : absl::StrCat("did you mean `", nearest, "`?")));
}

// Applies all options of a kind to the sweep. On failure, prints the problem and returns false.
template <typename Apply>
bool ApplyAll(Session& session, absl::string_view option, const std::vector<std::string>& assignments,
              const Apply& apply) {
  for (const std::string& assignment : assignments) {
    const absl::Status status = apply(assignment);
    if (status.ok()) continue;
    for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
      session.terminal().Err(absl::StrCat(option, ": ", line, "\n"));
    }
    return false;
  }
  return true;
}

// Reads the file and applies the options' changes. On failure, prints every problem and returns nothing.
absl::optional<client::SweepFile> ReadSweep(Session& session, const SweepOptions& options) {
  if (!CheckOn(session, options.on)) return absl::nullopt;
  absl::StatusOr<client::SweepFile> file = client::ReadSweepFile(options.file);
  if (!file.ok()) {
    session.terminal().Err(absl::StrCat(file.status().message(), "\n"));
    return absl::nullopt;
  }
  v1::Sweep* sweep = &file->sweep;
  const bool right =
      ApplyAll(session, "--set", options.overrides,
               [sweep](const std::string& set) { return ApplyOverride(set, sweep->mutable_base()); }) &&
      ApplyAll(session, "--grid", options.grid,
               [sweep](const std::string& grid) { return client::AddGrid(grid, sweep); }) &&
      ApplyAll(session, "--random", options.random,
               [sweep](const std::string& random) { return client::AddRandom(random, sweep); });
  if (!right) return absl::nullopt;
  ApplyOn(options.on, sweep->mutable_base());
  if (options.samples > 0) sweep->mutable_random()->set_samples(options.samples);
  if (options.seed > 0) sweep->mutable_random()->set_seed(options.seed);
  if (options.max_running > 0) sweep->set_max_running(options.max_running);
  if (!options.objective.empty()) sweep->mutable_objective()->set_metric(options.objective);
  if (!options.name.empty()) sweep->set_display_name(options.name);
  // Keeps the rule in the file.
  if (options.prune) sweep->mutable_pruning();
  return *std::move(file);
}

// Returns the option that gives the field of a CreateSweepRequest, such as "--objective". Returns "" if the
// file gives the field.
std::string OptionOf(const SweepOptions& options, const client::SweepFile& file, absl::string_view field) {
  if (field == "sweep.base.training.best_model.metric" && !options.objective.empty()) return "--objective";
  const bool draws = !options.random.empty() && file.file.positions.count("random.samples") == 0;
  // If the file is a job, only options give a sweep's fields.
  const struct {
    absl::string_view field;
    const char* option;
    bool is_given;
  } fields[] = {
      {"sweep.objective.metric", "--objective", !options.objective.empty()},
      {"sweep.display_name", "--name", !options.name.empty()},
      {"sweep.max_running", "--max-running", options.max_running > 0},
      // A job file has no min_jobs.
      {"sweep.pruning.min_jobs", "--prune: pruning.min_jobs",
       options.prune && file.file.positions.count("pruning") == 0},
      {"sweep.random.samples", "--samples", options.samples > 0 || draws},
      {"sweep.random.fields", "--random", false},
      {"sweep.random", "--random", false},
      {"sweep.grid", "--grid", false},
  };
  for (const auto& one : fields) {
    if (absl::StartsWith(field, one.field)) return one.is_given || file.is_job ? one.option : "";
  }
  return "";
}

// Prints why the daemon refused a sweep, with a line for each field. The line has the field's option or its
// place in the file.
int FailSweep(Session& session, const SweepOptions& options, const client::SweepFile& file,
              const absl::Status& status) {
  const std::vector<client::FieldViolation> violations = client::FieldViolations(status);
  if (violations.empty()) return session.Fail(status);
  for (const client::FieldViolation& violation : violations) {
    absl::string_view path = violation.field;
    absl::ConsumePrefix(&path, "sweep.");
    if (file.is_job) absl::ConsumePrefix(&path, "base.");
    const std::string option = OptionOf(options, file, violation.field);
    const std::string place = option.empty() ? client::DescribeField(file.file, path)
                              // An element needs its index.
                              : absl::StrContains(path, '[') ? absl::StrCat(option, ": ", path)
                                                             : option;
    session.terminal().Err(Printable(absl::StrCat(place, ": ", violation.description, "\n")));
  }
  return ExitCodeOf(status);
}

int Show(Session& session, v1::Sweep sweep) {
  session.MakeShowable(&sweep);
  session.terminal().Out(session.structured() ? Structured(session.options.output, sweep)
                                              : SweepText(sweep, session.style()));
  return kSucceeded;
}

// Shows a sweep while its jobs run. A terminal redraws the table. Otherwise each job that ends gets a line.
// Programs get nothing.
class SweepDisplay {
 public:
  // `session` must outlive this object.
  explicit SweepDisplay(Session& session)
      : session_(session),
        live_(session.terminal().Interactive() && !session.structured()),
        block_(session.terminal()) {}

  void OnSweep(v1::Sweep sweep) {
    if (session_.structured()) return;
    session_.MakeShowable(&sweep);
    Terminal& terminal = session_.terminal();
    if (live_) {
      block_.Draw(SweepLines(sweep, session_.style(), terminal.Width() - 1, terminal.Height() - 1));
      return;
    }
    for (const v1::SweepResult& result : sweep.results()) {
      if (!HasEnded(result.state()) || !told_.insert(result.job()).second) continue;
      terminal.Out(absl::StrCat(JobId(result.job()), " ", ColoredResultState(result, session_.style()), "  ",
                                ValuesText(result), "\n"));
    }
  }

  void OnNote(absl::string_view note) {
    block_.Erase();
    session_.terminal().Err(absl::StrCat(note, "\n"));
  }

  // Erases the table. The next output takes its place.
  void Close() {
    if (live_) {
      block_.Erase();
    } else if (!session_.structured()) {
      session_.terminal().Out("\n");
    }
  }

 private:
  static bool HasEnded(v1::JobState state) {
    return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
           state == v1::JOB_STATE_CANCELLED;
  }

  Session& session_;
  const bool live_;
  LiveBlock block_;
  // Jobs whose end was printed.
  std::set<std::string> told_;
};

// Waits until all jobs have ended, then shows their results.
int Wait(Session& session, client::Client& client, const v1::Sweep& sweep) {
  SweepDisplay display(session);
  StreamNotes observer(session.terminal(), [&display](absl::string_view note) { display.OnNote(note); });
  absl::StatusOr<v1::Sweep> ended =
      client.FollowSweep(sweep.name(), observer, [&display](const v1::Sweep& now) { display.OnSweep(now); });
  const std::string id = SweepId(sweep.name());
  if (absl::IsCancelled(ended.status()) && !session.terminal().OutputStatus().ok()) return kOutputLost;
  if (absl::IsCancelled(ended.status()) && session.terminal().Interrupted()) {
    session.terminal().Err(
        absl::StrCat("stopped waiting; the sweep continues\n  show it with: tandem sweep show ", id,
                     "\n  cancel it with: tandem sweep cancel ", id, "\n"));
    return kDetached;
  }
  if (!ended.ok()) return session.Fail(ended.status());
  display.Close();
  const int code = ExitCodeOfSweep(ended->state());
  Show(session, *std::move(ended));
  return code;
}

int CreateSweep(Session& session, const SweepOptions& options) {
  const absl::optional<client::SweepFile> file = ReadSweep(session, options);
  if (!file.has_value()) return kBadUsage;
  v1::Sweep wanted = file->sweep;
  if (!MayTakeWeights(session, options.weights, options.file, wanted.base())) return kBadUsage;
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  if (const int code = UploadWeights(session, **client, options.weights, wanted.mutable_base());
      code != kSucceeded) {
    return code;
  }
  const std::string request_id = options.request_id.empty() ? RandomRequestId() : options.request_id;
  absl::StatusOr<v1::Sweep> sweep = (*client)->CreateSweep(wanted, request_id, options.check);
  if (!sweep.ok()) {
    const int code = FailSweep(session, options, *file, sweep.status());
    if (!options.check && MayHaveArrived(sweep.status())) {
      session.terminal().Err(
          absl::StrCat("The daemon may have accepted the sweep. Submit it again with --request-id ",
                       request_id, ": this never creates a second sweep.\n"));
    }
    return code;
  }
  if (options.check) {
    if (session.structured()) return Show(session, *std::move(sweep));
    session.MakeShowable(&*sweep);
    for (const v1::SweepResult& result : sweep->results()) {
      session.terminal().Out(absl::StrCat(ValuesText(result), "\n"));
    }
    session.terminal().Out(absl::StrCat("all ", sweep->jobs(), " jobs are valid; none was submitted\n"));
    return kSucceeded;
  }
  if (session.structured()) {
    return options.wait ? Wait(session, **client, *sweep) : Show(session, *std::move(sweep));
  }
  const std::string id = SweepId(sweep->name());
  session.terminal().Out(
      absl::StrCat("submitted ", session.style().Bold(id), ": ", sweep->jobs(), " jobs\n"));
  if (options.wait) return Wait(session, **client, *sweep);
  session.terminal().Out(absl::StrCat("show it with: tandem sweep show ", id, "\n"));
  return kSucceeded;
}

int ShowOne(Session& session, const std::string& reference) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<v1::Sweep> sweep = FindSweep(**client, reference);
  return sweep.ok() ? Show(session, *std::move(sweep)) : session.Fail(sweep.status());
}

int ListSweeps(Session& session, int limit) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const auto row = [&session,
                    now = session.terminal().Now()](const v1::Sweep& sweep) -> std::vector<std::string> {
    return {SweepId(sweep.name()),
            sweep.user(),
            ColoredSweepState(sweep.state(), session.style()),
            absl::StrCat(sweep.jobs()),
            FormatAge(now - FromProto(sweep.create_time())),
            sweep.has_best()
                ? absl::StrCat(sweep.best().best().metric(), " ", FormatMeasure(sweep.best().value()),
                               " with ", ValuesText(sweep.best()))
                : "-"};
  };
  return PrintTable(session, (*client)->ListSweeps(limit),
                    "no sweeps yet; `tandem sweep FILE --grid PATH=VALUES` makes one\n",
                    {{"SWEEP"}, {"USER"}, {"STATE"}, {"JOBS", true}, {"AGE", true}, {"BEST"}}, row);
}

// Cancels or deletes sweeps.
int Change(Session& session, const std::vector<std::string>& references, bool removes) {
  return ChangeEach<v1::Sweep>(
      session, references,
      [removes](client::Client& client, const std::string& reference) -> absl::StatusOr<v1::Sweep> {
        absl::StatusOr<v1::Sweep> sweep = FindSweep(client, reference);
        if (!sweep.ok()) return sweep;
        if (!removes) return client.CancelSweep(sweep->name());
        if (absl::Status deleted = client.DeleteSweep(sweep->name()); !deleted.ok()) return deleted;
        return sweep;
      },
      [&](const v1::Sweep& sweep) {
        return absl::StrCat(
            SweepId(sweep.name()), " ",
            removes ? "deleted, with its jobs" : ColoredSweepState(sweep.state(), session.style()));
      });
}

void AddMany(Command app, const char* name, const char* description, bool removes, Session& session,
             int& exit_code) {
  auto references = std::make_shared<std::vector<std::string>>();
  const Command command = app.AddCommand(name, description);
  command.AddOption("SWEEP", *references, "Ids of sweeps, or the beginnings of them").Required();
  command.Action(
      [references, removes, &session, &exit_code] { exit_code = Change(session, *references, removes); });
}

}  // namespace

void AddSweep(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<SweepOptions>();
  const Command command = app.AddCommand(
      "sweep", "Train a job with many values of some fields and find the best; show, list and cancel sweeps");
  command.AddOption(
      "FILE", options->file,
      "Sweep file (with its job under `base:`), or a job file whose varying fields are options");
  command
      .AddOption("--grid", options->grid,
                 "Values of a field, combined with every value of the other fields: "
                 "training.optimizer.adam.learning_rate=0.1,0.01")
      .ValueName("PATH=VALUES")
      .OneValueEach();
  command
      .AddOption(
          "--random", options->random,
          "A field with random values: PATH=uniform(MIN,MAX), log_uniform(MIN,MAX), integer(MIN,MAX) or "
          "choice(A,B,...); with --samples")
      .ValueName("PATH=DISTRIBUTION")
      .OneValueEach();
  command.AddOption("--samples", options->samples, "The number of jobs with random values")
      .ValueName("N")
      .Range(1, 1000);
  command.AddOption("--seed", options->seed, "The seed of the random values (default: 0)").ValueName("N");
  command
      .AddOption("--max-running", options->max_running,
                 "The largest number of jobs with devices at a time (default: no limit)")
      .ValueName("N")
      .Range(1, 1000);
  command
      .AddOption("--objective", options->objective,
                 "The measure of the best job: loss or a metric (default: best_model's)")
      .ValueName("METRIC");
  command.AddFlag("--prune", options->prune,
                  "End jobs early that are worse than the median of the jobs that succeeded (pruning)");
  command.AddOption("--name", options->name, "The sweep's name (default: the job's)").ValueName("NAME");
  command.AddOption("--set", options->overrides, "Change a field of the job: PATH=VALUE")
      .ValueName("PATH=VALUE")
      .OneValueEach();
  AddOn(command, options->on);
  command
      .AddOption(
          "--weights", options->weights,
          "Start all jobs from the weights in this safetensors file (initial_weights): upload a file of "
          "this machine, or have the daemon fetch a URL")
      .ValueName("FILE|URL");
  command.AddFlag("-w,--wait", options->wait, "Follow the jobs until all have ended, and show their results");
  command.AddFlag("--check", options->check, "Check and list all jobs, and submit none");
  command.AddOption("--request-id", options->request_id, "An id that makes a repeated command harmless")
      .ValueName("ID");
  auto limit = std::make_shared<int>(20);
  command.Action([options, limit, &session, &exit_code] {
    exit_code = options->file.empty() ? ListSweeps(session, *limit) : CreateSweep(session, *options);
  });

  const Command show =
      command.AddCommand("show", "Show a sweep's jobs, values and results; * marks the best weights");
  auto reference = std::make_shared<std::string>();
  show.AddOption("SWEEP", *reference, "The sweep's id, or the beginning of it").Required();
  show.Action([reference, &session, &exit_code] { exit_code = ShowOne(session, *reference); });
  const Command list = command.AddCommand("list", "List sweeps, newest first (the default)");
  list.AddOption("--limit", *limit, "The largest number of sweeps; 0: all")
      .ShowDefault()
      .ValueName("N")
      .Range(0, 1'000'000);
  list.Action([limit, &session, &exit_code] { exit_code = ListSweeps(session, *limit); });
  AddMany(command, "cancel", "Cancel all jobs of sweeps that have not ended", /*removes=*/false, session,
          exit_code);
  AddMany(command, "delete", "Remove sweeps whose jobs have all ended, with their jobs' logs and files",
          /*removes=*/true, session, exit_code);
}

}  // namespace tandem::cli
