#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/described_model.h"
#include "client/cli/epoch_table.h"
#include "client/cli/fact_list.h"
#include "client/cli/format.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_progress.h"
#include "client/cli/job_reference.h"
#include "client/cli/progress_line.h"
#include "client/cli/waiting_text.h"
#include "proto/job_file/enum_names.h"
#include "proto/job_file/yaml_writer.h"

namespace tandem::cli {
namespace {

std::string Measures(const v1::Evaluation& evaluation) {
  std::string text = absl::StrCat("loss ", FormatMeasure(evaluation.loss()));
  for (const auto& [metric, value] : OrderedMetrics(evaluation)) {
    absl::StrAppend(&text, ", ", metric, " ", FormatMeasure(value));
  }
  return text;
}

// Returns "1 of 3 since a checkpoint last had a new epoch, or since the start; it starts again in 4 s or
// later".
std::string Restarts(const v1::Job& job, absl::Time now) {
  if (job.restarts() == 0) return "";
  const std::string count = absl::StrCat(job.restarts(), " of ", job.spec().max_restarts(),
                                         " since a checkpoint last had a new epoch, or since the start");
  if (!job.has_restart_time()) return count;
  const absl::Duration wait = FromProto(job.restart_time()) - now;
  if (wait <= absl::ZeroDuration()) return count;
  return absl::StrCat(count, "; it starts again in ", FormatElapsed(absl::Ceil(wait, absl::Seconds(1))),
                      " or later");
}

// Returns "Slurm job 4711 on n1, n2".
std::string ClusterText(const v1::Job& job) {
  const v1::ClusterAttempt& attempt = job.cluster_attempt();
  return absl::StrCat(job.spec().cluster().has_slurm() ? "Slurm job "
                      : job.spec().cluster().has_ssh() ? "SSH job "
                                                       : "job ",
                      attempt.id(), attempt.nodes().empty() ? "" : " on ",
                      absl::StrJoin(attempt.nodes(), ", "));
}

std::string Description(Session& session, const v1::Job& job) {
  const Style& style = session.style();
  const absl::TimeZone zone = session.terminal().TimeZone();
  const absl::Time now = session.terminal().Now();
  FactList facts(style, /*width=*/10);
  facts.Add("job", style.Bold(JobId(job.name())));
  facts.Add("state", absl::StrCat(ColoredState(job.state(), style),
                                  job.message().empty() ? "" : ": " + Indented(job.message())));
  if (job.reason() != v1::STATE_REASON_UNSPECIFIED) facts.Add("reason", ShortEnumName(job.reason()));
  // Also set while a cluster queues a STARTING job.
  if (job.has_waiting()) facts.Add("waits", WaitingText(job.waiting(), now));
  if (job.has_cluster_attempt()) facts.Add("cluster", ClusterText(job));
  facts.Add("created", absl::StrCat(FormatTimestamp(FromProto(job.create_time()), zone), " (",
                                    FormatAge(now - FromProto(job.create_time())), " ago)"));
  if (job.has_start_time()) {
    facts.Add(job.attempt() > 1 ? "went on" : "started", FormatTimestamp(FromProto(job.start_time()), zone));
  }
  if (job.has_end_time()) {
    facts.Add("ended", FormatTimestamp(FromProto(job.end_time()), zone));
  }
  if (job.run_seconds() > 0) {
    facts.Add("ran", absl::StrCat(FormatElapsed(absl::Seconds(job.run_seconds())),
                                  HoldsDevices(job.state()) ? " before this attempt" : ""));
  }
  if (job.attempt() > 1) facts.Add("attempt", absl::StrCat(job.attempt()));
  facts.Add("restarts", Restarts(job, now));
  if (job.has_forked_from()) {
    facts.Add("fork", absl::StrCat("of ", JobId(job.forked_from().job()), ", from its checkpoint of step ",
                                   FormatCount(job.forked_from().step())));
  }
  facts.Add("replicas",
            absl::StrCat(std::max(1, job.spec().replicas().count()), job.devices().empty() ? "" : " on ",
                         absl::StrJoin(job.devices(), ", ", [](std::string* out, const std::string& name) {
                           out->append(ShortName(name));
                         })));
  if (job.planned_memory_bytes() > 0) {
    facts.Add("memory", FormatBytes(job.planned_memory_bytes()) + " planned for each replica");
  }
  if (job.has_progress()) {
    const v1::Progress& progress = job.progress();
    facts.Add("progress",
              absl::StrCat("epoch ", progress.epoch(), "/", progress.epochs(), ", step ",
                           FormatCount(progress.step()), "/", FormatCount(progress.steps()), ", ",
                           Measures(progress.training()), ", ", FormatRate(progress.images_per_second()),
                           " samples/s",
                           progress.loss_scale() == 0
                               ? ""
                               : absl::StrCat(", loss scale ", FormatSetting(progress.loss_scale()))));
  }
  if (job.has_last_epoch()) {
    const v1::EpochSummary& epoch = job.last_epoch();
    facts.Add("epoch",
              absl::StrCat(epoch.epoch(), "/", epoch.epochs(), ": training ", Measures(epoch.training()),
                           epoch.has_validation() ? "; validation " + Measures(epoch.validation()) : "",
                           epoch.skipped_steps() == 0
                               ? ""
                               : absl::StrCat("; ", FormatCount(epoch.skipped_steps()),
                                              " steps left out, whose gradients were not finite")));
    if (session.wide()) {
      for (const v1::ReplicaShare& share : epoch.replicas()) {
        facts.Add(absl::StrCat("replica ", share.rank()),
                  absl::StrCat(share.device(), ": ", FormatCount(share.samples()), " samples, waited ",
                               FormatElapsed(absl::Seconds(share.data_wait_seconds())), " for data and ",
                               FormatElapsed(absl::Seconds(share.reduce_seconds())), " for averaging"));
      }
    }
  }
  if (job.has_best()) {
    const bool kept = HasBestModel(job.artifacts());
    facts.Add("best",
              absl::StrCat(BestText(job.best()),
                           kept || job.has_summary() ? WhereBestWeightsAre(job.summary(), kept) : ""));
  }
  if (job.has_summary()) facts.Add("trained", SummaryText(job.summary()));
  if (job.has_last_checkpoint()) {
    facts.Add("checkpoint", absl::StrCat("of step ", FormatCount(job.last_checkpoint().step()), " (",
                                         FormatBytes(job.last_checkpoint().size_bytes()), ")"));
  }
  for (const v1::Artifact& artifact : job.artifacts()) {
    facts.Add("made", absl::StrCat(artifact.name(), " (", FormatBytes(artifact.size_bytes()), ")",
                                   artifact.description().empty() ? "" : ": " + artifact.description()));
  }
  facts.Add("folder", job.folder());
  facts.Add("events", FormatCount(job.last_sequence()));
  std::string text = facts.text();
  absl::StrAppend(&text, style.Dim("spec"), "\n");
  for (absl::string_view line : absl::StrSplit(ToYaml(job.spec()), '\n')) {
    if (!line.empty()) absl::StrAppend(&text, "  ", line, "\n");
  }
  return text;
}

// Returns a job file that creates the same job again. Its head has the job's state.
std::string AsJobFile(const v1::Job& job) {
  std::string head = absl::StrCat("# ", job.name(), ": ", ShortEnumName(job.state()));
  if (!job.message().empty()) {
    absl::StrAppend(&head, ", ", absl::StrJoin(absl::StrSplit(job.message(), absl::ByAnyChar("\r\n")), " "));
  }
  return absl::StrCat(head, "\n", ToYaml(job.spec()));
}

int RunDescribe(Session& session, const std::string& reference) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<v1::Job> job = FindJob(**client, reference);
  if (!job.ok()) return session.Fail(job.status());
  session.MakeShowable(&*job);
  switch (session.options.output) {
    case OutputFormat::kJson:
      session.terminal().Out(Structured(OutputFormat::kJson, *job));
      break;
    case OutputFormat::kYaml:
      session.terminal().Out(AsJobFile(*job));
      break;
    default:
      session.terminal().Out(Description(session, *job));
  }
  return kSucceeded;
}

}  // namespace

void AddDescribe(Command app, Session& session, int& exit_code) {
  auto reference = std::make_shared<std::string>();
  auto model = std::make_shared<DescribedModel>();
  const Command command = app.AddCommand(
      "describe", "Show all facts of a job; -o yaml prints a job file that can be submitted again");
  const Option job = command.AddOption("JOB", *reference, "The job's id, or the beginning of it");
  const Option network =
      command
          .AddOption(
              "--model", model->source,
              absl::StrCat("Show the layers of a network instead: of a job file, a job, or a template (",
                           absl::StrJoin(ModelTemplateNames(), ", "), ")"))
          .ValueName("MODEL")
          .Excludes(job);
  command
      .AddOption("--dataset", model->dataset,
                 "With --model: the data set for a template's shape, by name or as a file (default: the job "
                 "file's, or the template's usual data set)")
      .ValueName("DATASET")
      .Needs(network);
  command.AddOption("--set", model->overrides, "With --model: change a field, as for submit")
      .ValueName("PATH=VALUE")
      .OneValueEach()
      .Needs(network);
  command
      .AddOption("--batch-size", model->batch_size,
                 "With --model: the batch size for the memory (default: the job's, or 1)")
      .ValueName("N")
      .Range(1, 65536)
      .Needs(network);
  command.Action(
      [reference, model, &session, &exit_code] {
        exit_code = model->source.empty() ? RunDescribe(session, *reference) : DescribeModel(session, *model);
      },
      [reference, model] {
        return reference->empty() && model->source.empty()
                   ? absl::InvalidArgumentError("cannot describe: no job is named; give JOB or --model")
                   : absl::OkStatus();
      });
}

}  // namespace tandem::cli
