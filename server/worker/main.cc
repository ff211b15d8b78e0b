// tandem-worker: trains one job and reports to the daemon that started it. Also trains a job without a
// daemon, under a cluster's own scheduler. server/workers/exit_codes.h describes the exit codes.

#include <fcntl.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/backend/collective_time_limit.h"
#include "engine/backend/device_probe.h"
#include "engine/backends/device_factory.h"
#include "engine/base/crash_report.h"
#include "engine/base/deadlock_checks.h"
#include "engine/base/env.h"
#include "engine/base/memory_error.h"
#include "engine/base/standard_files.h"
#include "engine/base/status_macros.h"
#include "engine/base/version.h"
#include "engine/training/plan.h"
#include "engine/training/trainer.h"
#include "google/protobuf/text_format.h"
#include "server/worker/cluster_place.h"
#include "server/worker/environment_launch.h"
#include "server/worker/event_reporter.h"
#include "server/worker/gpu_topology.h"
#include "server/worker/job_devices.h"
#include "server/worker/job_run.h"
#include "server/worker/model_run.h"
#include "server/worker/trainer_options.h"
#include "server/workers/exit_codes.h"
#include "server/workers/job_folder.h"
#include "server/workers/model_task_frames.h"
#include "server/workers/sandbox.h"
#include "server/workers/sandbox_options.h"
#include "server/workers/worker_lock.h"
#include "tandem/internal/v1/worker.pb.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using internal::v1::WorkerEvent;
using internal::v1::WorkerLaunch;

// The time that a finished worker waits for a daemon. The next daemon reads the rest from the spool.
constexpr absl::Duration kPatience = absl::Seconds(60);
// The nice value of predictions and evaluations.
constexpr int kModelPriority = 10;
// If memory runs out, the kernel ends predictions and evaluations first, because their memory is not planned.
// Then it ends trainings, and last the daemon (proc(5), oom_score_adj).
constexpr int kModelOomScore = 800;
constexpr int kTrainingOomScore = 300;
// The memory of a prediction besides its samples and their network: libraries, stacks, the model's file.
constexpr int64_t kModelMemory = int64_t{4} << 30;

// Raising the score is always allowed; a failure does no harm.
void SetOomScore(int score) { std::ofstream("/proc/self/oom_score_adj") << score; }

absl::StatusOr<WorkerLaunch> ReadLaunch(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const std::string text, Env::Real()->ReadFile(path));
  WorkerLaunch launch;
  if (!google::protobuf::TextFormat::ParseFromString(text, &launch)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, ": it is not a WorkerLaunch in text format"));
  }
  return launch;
}

// Returns a variable of this process; nullopt if unset.
std::optional<std::string> Variable(const char* name) {
  const char* const value = getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

// Returns the launch of a worker without a daemon, and creates the output folder.
absl::StatusOr<WorkerLaunch> PrepareAlone(EnvironmentLaunchOptions options) {
  std::error_code error;
  std::filesystem::create_directories(options.output_folder, error);
  options.output_folder = std::filesystem::absolute(options.output_folder).string();
  if (!std::filesystem::is_directory(options.output_folder, error)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot create the folder ", options.output_folder));
  }
  return LaunchFromEnvironment(options, Variable);
}

// The sandbox options on the command line.
struct SandboxArguments {
  std::string mode = SandboxModeName(SandboxMode::kOff);
  std::vector<std::string> readable;
};

bool HasGpu(const WorkerLaunch& launch) {
  return std::any_of(launch.devices().begin(), launch.devices().end(),
                     [](const v1::Device& device) { return device.kind() == v1::DEVICE_KIND_GPU; });
}

// Confines this process, which must have one thread, by the policy and the command line. Returns false if the
// process must not continue.
bool Confine(const SandboxArguments& arguments, SandboxPolicy policy) {
  const SandboxMode mode = ParseSandboxMode(arguments.mode).value_or(SandboxMode::kBestEffort);
  if (mode == SandboxMode::kOff) return true;
  policy.read.insert(policy.read.end(), arguments.readable.begin(), arguments.readable.end());
  for (const char* variable : {"TANDEM_CPU_ALGORITHMS", "TANDEM_CUDA_PLANS"}) {
    const char* const path = getenv(variable);
    if (path == nullptr) continue;
    // Landlock can only allow an existing file, and its folder has other files.
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file >= 0) close(file);
    policy.write.emplace_back(path);
  }
  const absl::StatusOr<SandboxState> state = EnterSandbox(mode, policy);
  if (!state.ok()) {
    spdlog::error("{}", std::string(state.status().message()));
    return false;
  }
  spdlog::log(state->missing.empty() ? spdlog::level::info : spdlog::level::warn, "confined: {}",
              DescribeSandbox(*state));
  return true;
}

// Returns the policy of a training worker.
SandboxPolicy PolicyOf(const WorkerLaunch& launch) {
  SandboxPolicy policy;
  policy.write = {launch.job_folder()};
  if (!launch.initial_weights_path().empty()) policy.read = {launch.initial_weights_path()};
  policy.gpu = HasGpu(launch);
  // A single process on CPUs needs only the daemon.
  if (launch.group().workers() <= 1 && !policy.gpu && !launch.has_cluster()) {
    policy.network = WorkerNetwork::kUnix;
  }
  return policy;
}

// Blocks SIGTERM and `other` in this thread and all later threads, so that only a thread that waits for them
// gets them. Call while this is the only thread.
sigset_t BlockStopSignals(int other) {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, other);
  pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  return stops;
}

// Blocks the signals by which Slurm announces an end.
sigset_t BlockClusterSignals() { return BlockStopSignals(SIGUSR1); }

// Waits for the signal with which the cluster announces the end of the attempt, and interrupts the run.
void InterruptAtSignal(const v1::Cluster& cluster, JobRun* run, sigset_t stops) {
  int signal = 0;
  sigwait(&stops, &signal);
  AnnouncedEnd end = EndOfSignal(cluster, signal);
  spdlog::info("stopping with a checkpoint. {}", end.message);
  run->Interrupt(end.reason, std::move(end.message));
}

// Trains and reports. `host` is Hello.host.
int RunWorker(const WorkerLaunch& launch, const std::string& host) {
  std::unique_ptr<EventReporter> reporter;
  JobRun run(launch, DevicesFor(launch.spec()), Trainer::Create,
             [&reporter](WorkerEvent event) { return reporter->Report(std::move(event)); });
  EventReporter::Options options;
  options.job_id = launch.job_id();
  options.attempt = launch.attempt();
  options.worker = launch.group().worker();
  options.host = host;
  options.secret = launch.secret();
  options.daemon_target = launch.daemon_target();
  options.daemon_certificate = launch.daemon_certificate();
  options.spool_path = JobFolder(launch.job_folder()).SpoolPath(launch.attempt());
  options.on_cancel = [&run] {
    spdlog::info("stopping for good");
    run.Cancel();
  };
  options.on_pause = [&run] {
    spdlog::info("stopping with a checkpoint, to continue later");
    run.Pause();
  };
  options.on_dismissed = [](absl::string_view message) {
    spdlog::error("dismissed by the daemon: {}", std::string(message));
    // Another process may be the job's worker, so write nothing more, not even in destructors.
    std::_Exit(kWorkerDismissed);
  };
  if (launch.has_cluster()) {
    // `run` may end while this thread waits, so the process then exits without destructors.
    std::thread([&run, cluster = launch.cluster(), stops = BlockClusterSignals()] {
      InterruptAtSignal(cluster, &run, stops);
    }).detach();
  }
  absl::StatusOr<std::unique_ptr<EventReporter>> created = EventReporter::Create(std::move(options));
  if (!created.ok()) {
    spdlog::error("{}", created.status().ToString());
    return kWorkerSpoolFailed;
  }
  reporter = *std::move(created);

  const absl::Status status = run.Run();
  if (!status.ok()) {
    spdlog::error("cannot report to the daemon any more: {}", status.ToString());
  } else if (!reporter->Drain(kPatience)) {
    spdlog::warn(
        "cannot give the last events to the daemon: no answer; the daemon reads them from the spool");
  }
  // Destroy it before `run`, which its thread may call.
  reporter = nullptr;
  const int code = !status.ok()          ? kWorkerSpoolFailed
                   : run.device_failed() ? kWorkerDeviceFailed
                                         : kWorkerDone;
  if (launch.has_cluster()) {
    spdlog::info("worker ends job={} attempt={} code={}", launch.job_id(), launch.attempt(), code);
    std::_Exit(code);
  }
  return code;
}

// Runs a worker of a group other than the first; only the first reports. The exit code tells the result, and
// the last line of the log the reason. Sets `has_begun` when all workers have met.
int RunGroupMember(const WorkerLaunch& launch, std::atomic<bool>* has_begun) {
  std::unique_ptr<Trainer> trainer;
  const absl::Status status = CatchNoMemory([&]() -> absl::Status {
    Trainer::Options options = TrainerOptionsOf(launch, DevicesFor(launch.spec()));
    options.group.connect = [connect = std::move(options.group.connect), has_begun](int first, int count) {
      auto communicators = connect(first, count);
      *has_begun = communicators.ok();
      return communicators;
    };
    TANDEM_ASSIGN_OR_RETURN(trainer, Trainer::Create(std::move(options)));
    return trainer->Run();
  });
  // The first worker was told to stop.
  if (status.ok() || absl::IsCancelled(status)) return kWorkerDone;
  spdlog::error("{}", std::string(status.message()));
  // Exit at once, without destructors that would wait for others.
  std::_Exit(kWorkerGroupFailed);
}

// Waits for stop signals, for a worker without a daemon. The first signal calls `pause`, if training has
// begun. Otherwise, the first signal stops the process: the worker may wait for others for minutes. A second
// signal always does.
void PauseAtSignal(sigset_t stops, const std::atomic<bool>& has_begun, const std::function<void()>& pause) {
  int signal = 0;
  sigwait(&stops, &signal);
  if (has_begun) {
    pause();
    sigwait(&stops, &signal);
  }
  spdlog::info("stopping for good");
  std::_Exit(kWorkerTrainingFailed);
}

// Trains without a daemon, and reports to the log. SIGTERM and SIGINT pause the training with a checkpoint.
// The next start continues from this checkpoint. See PauseAtSignal.
int RunAlone(const WorkerLaunch& launch) {
  const sigset_t stops = BlockStopSignals(SIGINT);
  // The threads of signals outlive this function.
  static std::atomic<bool> has_begun = false;
  if (launch.group().worker() > 0) {
    // The first worker pauses all.
    std::thread([stops] { PauseAtSignal(stops, has_begun, [] {}); }).detach();
    return RunGroupMember(launch, &has_begun);
  }
  int code = kWorkerTrainingFailed;
  JobRun run(launch, DevicesFor(launch.spec()), Trainer::Create, [&code](const WorkerEvent& event) {
    if (event.has_started()) has_begun = true;
    if (event.report().has_progress()) {
      const v1::Progress& progress = event.report().progress();
      spdlog::info("step {} of {}: training loss {:.6g}, {:.0f} samples/s", progress.step(), progress.steps(),
                   progress.training().loss(), progress.images_per_second());
    }
    if (event.report().has_artifact()) spdlog::info("wrote {}", event.report().artifact().name());
    const v1::JobState state = event.finished().state();
    if (state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_PAUSED) code = kWorkerDone;
    return absl::OkStatus();
  });
  std::thread([&run, stops] {
    PauseAtSignal(stops, has_begun, [&run] {
      spdlog::info("stopping with a checkpoint, to continue later");
      run.Pause();
    });
  }).detach();
  const absl::Status status = run.Run();
  if (!status.ok()) spdlog::error("{}", status.ToString(absl::StatusToStringMode::kWithNoExtraData));
  // Skip destructors, because the signal thread still uses `run`.
  std::cout.flush();
  std::_Exit(code);
}

// Gives this process its place among a cluster's workers. Sets `host` to the name of its node.
absl::Status TakePlace(WorkerLaunch* launch, std::string* host) {
  TANDEM_ASSIGN_OR_RETURN(const std::string address, AddressTowards(launch->daemon_target()));
  *host = Variable("SLURMD_NODENAME").value_or(address);
  return TakePlaceInCluster(Variable, address, launch);
}

// OpenMP reads this when a process starts: threads that spin while they wait are slow on shared cores.
void SetOpenMpEnvironment(char** argv) {
  constexpr char kPolicy[] = "OMP_WAIT_POLICY";
  if (getenv(kPolicy) != nullptr) return;
  setenv(kPolicy, "passive", /*overwrite=*/1);
  execv("/proc/self/exe", argv);
}

// Predicts, evaluates or reads a data set for the daemon. Tasks come through standard input until its end,
// and outputs return through standard output.
int RunModelWorker(const SandboxArguments& sandbox) {
  // Ends with the daemon, and has a lower priority than trainings.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpriority(PRIO_PROCESS, 0, kModelPriority);
  SetOomScore(kModelOomScore);
  signal(SIGPIPE, SIG_IGN);
  FrameReader tasks;
  internal::v1::ModelTask task;
  if (!tasks.Await(STDIN_FILENO, &task).value_or(false)) {
    spdlog::error("cannot read a ModelTask from standard input");
    return kWorkerBadLaunch;
  }
  // The process reads users' files, and answers through a pipe.
  SandboxPolicy policy;
  if (!task.model_path().empty()) policy.read = {task.model_path()};
  policy.network = WorkerNetwork::kNone;
  if (task.has_data()) {
    // Also without a sandbox, because files may inflate to any size.
    if (const absl::Status limit = LimitMemory(task.memory_bytes()); !limit.ok()) {
      spdlog::error("{}", limit.ToString());
      return kWorkerNotConfined;
    }
  } else if (task.memory_bytes() > 0) {
    policy.memory_bytes = 2 * task.memory_bytes() + kModelMemory;
  }
  if (!Confine(sandbox, std::move(policy))) return kWorkerNotConfined;
  ModelRun run(DevicesFor(task.spec()));
  for (;;) {
    absl::Status status = run.Perform(
        task, [](const internal::v1::ModelTaskOutput& output) { return WriteFrame(output, STDOUT_FILENO); });
    absl::StatusOr<bool> more = status.ok() ? tasks.Await(STDIN_FILENO, &task) : status;
    if (!more.ok()) {
      spdlog::error("{}", more.status().ToString());
      return kWorkerSpoolFailed;
    }
    if (!*more) return kWorkerDone;
  }
}

// Checks a device for the daemon after a worker crashed on it. The last line of the log names the fault.
int RunProbe(const std::string& name, const SandboxArguments& sandbox) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  SandboxPolicy policy;
  policy.gpu = true;
  policy.network = WorkerNetwork::kUnix;
  if (!Confine(sandbox, std::move(policy))) return kWorkerNotConfined;
  DeviceOptions options;
  options.deterministic = true;
  const absl::Status status = CatchNoMemory([&]() -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(name, options));
    return ProbeDevice(*device);
  });
  if (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status)) {
    spdlog::error("{}", std::string(status.message()));
    return kWorkerBadLaunch;
  }
  if (absl::IsResourceExhausted(status)) {
    // Other processes use the device.
    spdlog::warn("cannot check {}: other processes use its memory: {}", name, std::string(status.message()));
    return kWorkerDone;
  }
  if (status.ok()) return kWorkerDone;
  spdlog::error("{}", std::string(status.message()));
  // Skip destructors, because they would use the device again.
  std::_Exit(kWorkerDeviceFailed);
}

// The command line. It names one kind of work.
struct Arguments {
  std::string launch_path;
  int lock_fd = -1;
  std::string model;
  std::string probe;
  EnvironmentLaunchOptions alone;
  SandboxArguments sandbox;
};

// Has `app` write its options into `arguments`. Both must outlive the parsing.
void AddOptions(CLI::App* app, Arguments* arguments) {
  CLI::Option* const launch_option = app->add_option("--launch", arguments->launch_path,
                                                     "The training to run: a WorkerLaunch in text format");
  app->add_option("--lock-fd", arguments->lock_fd,
                  "File descriptor of worker.lock in the job's folder, locked by the parent process; by "
                  "default this program opens and locks it");
  CLI::Option* const model_option =
      app->add_option("--model-task", arguments->model,
                      "Predict, evaluate or read a data set instead, as a ModelTask on standard input says. "
                      "The value, the model's file, only shows in lists of processes");
  launch_option->excludes(model_option);
  CLI::Option* const probe_option =
      app->add_option("--probe", arguments->probe, "Check a device, such as gpu:0, instead of training")
          ->type_name("DEVICE");
  probe_option->excludes(launch_option)->excludes(model_option);
  arguments->alone.data_folders = {"/usr/share/datasets"};
  CLI::Option* const job_option =
      app->add_option(
             "--job", arguments->alone.job_file,
             "Train this job without a daemon: a JobSpec in text format, or in JSON (the name ends "
             "in .json, or the text starts with {); make one from YAML with `tandem validate FILE -o "
             "json`. Several workers find each other by RANK, WORLD_SIZE, MASTER_ADDR and "
             "MASTER_PORT, as torchrun sets them, or by Slurm's variables")
          ->type_name("FILE")
          ->excludes(launch_option)
          ->excludes(model_option)
          ->excludes(probe_option);
  CLI::Option* const output_option =
      app->add_option("--output", arguments->alone.output_folder,
                      "With --job: the folder for the model and checkpoints, the same for all workers; "
                      "created if missing. Training continues from a checkpoint in it")
          ->type_name("FOLDER")
          ->needs(job_option);
  job_option->needs(output_option);
  app->add_option("--data-folder", arguments->alone.data_folders,
                  "With --job: a folder with data; repeatable")
      ->type_name("FOLDER")
      ->needs(job_option)
      ->capture_default_str();
  app->add_option("--threads", arguments->alone.threads,
                  "With --job: CPU threads per replica; 0: the host's threads divided among its replicas")
      ->type_name("N")
      ->check(CLI::Range(0, 1024))
      ->needs(job_option)
      ->capture_default_str();
  app->add_option("--sandbox", arguments->sandbox.mode,
                  "Confine this process: off, on, or best-effort (as far as the kernel can)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"off", "best-effort", "on"}))
      ->excludes(job_option)
      ->capture_default_str();
  app->add_option("--may-read", arguments->sandbox.readable,
                  "With --sandbox: a readable folder or file; repeatable")
      ->type_name("PATH")
      ->allow_extra_args(false);
  app->require_option(1, 0);
}

// Trains for the daemon. `host` is this node's name on a cluster. `lock` is null on a cluster.
int TrainForDaemon(const WorkerLaunch& launch, const std::string& host, WorkerLock* lock,
                   const SandboxArguments& sandbox) {
  SetOomScore(kTrainingOomScore);
  if (!Confine(sandbox, PolicyOf(launch))) return kWorkerNotConfined;
  if (lock != nullptr) {
    if (const absl::Status status = lock->SetHolder({.attempt = launch.attempt(), .pid = getpid()});
        !status.ok()) {
      spdlog::warn("{}", status.ToString());
    }
  }
  if (launch.group().worker() > 0) {
    // The first worker stops all.
    if (launch.has_cluster()) BlockClusterSignals();
    std::atomic<bool> has_begun = false;
    return RunGroupMember(launch, &has_begun);
  }
  spdlog::info("worker begins job={} attempt={} pid={}", launch.job_id(), launch.attempt(), getpid());
  if (const std::string topology = DescribeGpuTopology({launch.devices().begin(), launch.devices().end()});
      !topology.empty()) {
    spdlog::info("GPUs: {}", topology);
  }
  const int code = RunWorker(launch, host);
  spdlog::info("worker ends job={} attempt={} code={}", launch.job_id(), launch.attempt(), code);
  return code;
}

// Trains for the daemon or alone. `argv` is the program's own.
int Train(Arguments arguments, char** argv) {
  const bool is_alone = !arguments.alone.job_file.empty();
  if (is_alone) SetOpenMpEnvironment(argv);
  absl::StatusOr<WorkerLaunch> launch =
      is_alone ? PrepareAlone(std::move(arguments.alone)) : ReadLaunch(arguments.launch_path);
  if (!launch.ok()) {
    // The message already has the violations.
    spdlog::error("{}", launch.status().ToString(absl::StatusToStringMode::kWithNoExtraData));
    return kWorkerBadLaunch;
  }
  // Only a GPU would read the variable, perhaps hours later.
  if (const absl::Status limit = CollectiveTimeLimit().status(); !limit.ok()) {
    spdlog::error("{}", std::string(limit.message()));
    return kWorkerBadLaunch;
  }
  std::string host;
  // On a cluster, the batch script's file "started" takes the lock's place.
  std::optional<WorkerLock> lock;
  if (launch->has_cluster()) {
    if (const absl::Status placed = TakePlace(&*launch, &host); !placed.ok()) {
      spdlog::error("{}", std::string(placed.message()));
      return kWorkerBadLaunch;
    }
  } else {
    const std::string lock_path = JobFolder(launch->job_folder()).LockPath(launch->group().worker());
    absl::StatusOr<WorkerLock> taken = arguments.lock_fd < 0
                                           ? WorkerLock::Acquire(lock_path)
                                           : WorkerLock::Inherit(arguments.lock_fd, lock_path);
    if (!taken.ok()) {
      spdlog::error("{}", taken.status().ToString());
      return kWorkerLockHeld;
    }
    lock = *std::move(taken);
  }
  const int worker = launch->group().worker();
  SetCrashReportFile(JobFolder(launch->job_folder()).CrashReportPath(launch->attempt(), worker),
                     absl::StrCat("tandem-worker ", kVersion, ", job ", launch->job_id(), ", attempt ",
                                  launch->attempt(), ", worker ", worker, ", process ", getpid()));
  return is_alone ? RunAlone(*launch)
                  : TrainForDaemon(*launch, host, lock.has_value() ? &*lock : nullptr, arguments.sandbox);
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Trains one job for the daemon, which starts this program. With --job, trains without a daemon.",
      "tandem-worker");
  app.set_version_flag("--version", std::string("tandem-worker ") + kVersion, "Print the version and exit");
  Arguments arguments;
  AddOptions(&app, &arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kWorkerDone : kWorkerBadLaunch;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("worker"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");

  if (!arguments.model.empty()) return RunModelWorker(arguments.sandbox);
  if (!arguments.probe.empty()) return RunProbe(arguments.probe, arguments.sandbox);
  return Train(std::move(arguments), argv);
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::OpenClosedStandardFiles();
  tandem::TurnOffDeadlockChecks();
  tandem::InstallCrashReports(argv[0]);
  return tandem::Main(argc, argv);
}
