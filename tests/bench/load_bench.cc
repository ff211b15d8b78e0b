// Measures the daemon under load, with the real programs on loopback. Run it on a machine without other load:
//
//   bazel run -c opt //tests/bench:load_bench -- watchers --watchers=1000 --seconds=30 --rounds=3
//   bazel run -c opt //tests/bench:load_bench -- submits --per-second=500 --seconds=60
//   bazel run -c opt //tests/bench:load_bench -- many-jobs --queued=10000 --finished=100000
//   bazel run -c opt //tests/bench:load_bench -- soak --minutes=30
//
// Each prints JSON lines and, at its end, a short table.
#include <iostream>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "tests/bench/load_many_jobs.h"
#include "tests/bench/load_soak.h"
#include "tests/bench/load_submits.h"
#include "tests/bench/load_watchers.h"

namespace tandem::bench {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("The daemon under load.");
  app.require_subcommand(1);

  WatchersSettings watchers;
  CLI::App* watchers_command = app.add_subcommand("watchers", "many watchers on one job");
  watchers_command->add_option("--watchers", watchers.watchers, "how many");
  watchers_command->add_option("--connections", watchers.connections, "that they share; 0: one each");
  watchers_command->add_option("--seconds", watchers.seconds, "of each window, with them and without");
  watchers_command->add_option("--rounds", watchers.rounds, "windows of either kind");
  watchers_command->add_option("--training-core", watchers.training_core, "of the job; -1: any");
  watchers_command->add_option("--daemon-core", watchers.daemon_core, "of daemon and watchers; -1: any");

  SubmitsSettings submits;
  CLI::App* submits_command = app.add_subcommand("submits", "jobs submitted at a steady rate");
  submits_command->add_option("--per-second", submits.per_second, "jobs");
  submits_command->add_option("--seconds", submits.seconds, "for how long");
  submits_command->add_option("--connections", submits.connections, "over which");

  ManyJobsSettings many_jobs;
  CLI::App* many_jobs_command = app.add_subcommand("many-jobs", "calls of a daemon with many jobs");
  many_jobs_command->add_option("--queued", many_jobs.queued, "jobs")->check(CLI::PositiveNumber);
  many_jobs_command->add_option("--finished", many_jobs.finished, "jobs")->check(CLI::PositiveNumber);
  many_jobs_command->add_option("--calls", many_jobs.calls, "of each kind");
  many_jobs_command->add_option("--submits-per-second", many_jobs.submits_per_second,
                                "while they are made again");

  SoakSettings soak;
  CLI::App* soak_command = app.add_subcommand("soak", "a steady load, and what the daemon holds");
  soak_command->add_option("--minutes", soak.minutes, "for how long");
  soak_command->add_option("--sample-seconds", soak.sample_seconds, "between samples");
  soak_command->add_option("--clients", soak.clients, "that submit jobs");
  soak_command->add_option("--watchers", soak.watchers, "of a job that goes on");

  CLI11_PARSE(app, argc, argv);
  const absl::Status status = *watchers_command    ? MeasureWatchers(watchers)
                              : *submits_command   ? MeasureSubmits(submits)
                              : *many_jobs_command ? MeasureManyJobs(many_jobs)
                                                   : MeasureSoak(soak);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) { return tandem::bench::Main(argc, argv); }
