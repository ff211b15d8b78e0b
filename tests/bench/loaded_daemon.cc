#include "tests/bench/loaded_daemon.h"

#include <sched.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "tests/integration/holdings.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"

namespace tandem::bench {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

// A connection is a file at either end.
void AllowManyFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

LoadedDaemon::LoadedDaemon(int cpu_devices)
    : process_({.state_folder = scratch_.File("state"),
                .cpu_devices = cpu_devices,
                .extra_arguments = {"--threads-per-cpu-device", "1", "--log-level", "warn"},
                .environment = {{"OMP_WAIT_POLICY", "passive"}}}) {
  AllowManyFiles();
}

absl::Status LoadedDaemon::Start() {
  TANDEM_RETURN_IF_ERROR(process_.Start());
  authorization_ = absl::StrCat("Bearer ", process_.Token());
  stub_ = NewStub();
  return absl::OkStatus();
}

std::unique_ptr<v1::JobService::Stub> LoadedDaemon::NewStub() const {
  return v1::JobService::NewStub(process_.NewChannel());
}

std::unique_ptr<grpc::ClientContext> LoadedDaemon::NewContext(absl::Duration deadline) const {
  auto context = std::make_unique<grpc::ClientContext>();
  context->AddMetadata("authorization", authorization_);
  context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(deadline));
  return context;
}

absl::StatusOr<v1::Job> LoadedDaemon::Create(const v1::JobSpec& spec, bool validate_only) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = spec;
  request.set_validate_only(validate_only);
  v1::Job job;
  TANDEM_RETURN_IF_ERROR(FromGrpc(stub_->CreateJob(NewContext(kPatience).get(), request, &job)));
  return job;
}

absl::StatusOr<v1::Job> LoadedDaemon::Get(const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  TANDEM_RETURN_IF_ERROR(FromGrpc(stub_->GetJob(NewContext(kPatience).get(), request, &job)));
  return job;
}

absl::Status LoadedDaemon::WaitFor(const std::string& name, v1::JobState state) {
  absl::StatusOr<v1::Job> job;
  const auto there = [&] {
    job = Get(name);
    return !job.ok() || job->state() == state;
  };
  if (testing::WaitUntil(there, kPatience)) return job.status();
  return absl::DeadlineExceededError(
      absl::StrCat(name, " is still ", v1::JobState_Name(job->state()), ": ", job->message()));
}

absl::StatusOr<v1::Job> LoadedDaemon::StartEndlessJob() {
  TANDEM_ASSIGN_OR_RETURN(v1::Job job, Create(EndlessJob()));
  TANDEM_RETURN_IF_ERROR(WaitFor(job.name(), v1::JOB_STATE_RUNNING));
  return job;
}

double LoadedDaemon::MemoryMib() const {
  return static_cast<double>(testing::HoldingsOf(process_.pid()).memory_bytes) / (1 << 20);
}

v1::JobSpec EndlessJob() {
  // Whole epochs of some seconds, so that there are few other events than reports.
  v1::JobSpec spec = testing::LongJob(1'000'000);
  spec.set_name("endless");
  spec.set_priority(100);
  spec.mutable_dataset()->mutable_synthetic()->set_train_samples(32'000);
  spec.mutable_training()->clear_report();
  spec.mutable_training()->mutable_report()->set_every_seconds(1);
  spec.mutable_checkpoints()->set_off(true);
  return spec;
}

absl::Status PinProcess(pid_t process, int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  const std::string folder = absl::StrCat("/proc/", process == 0 ? "self" : absl::StrCat(process), "/task");
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    int thread = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &thread)) continue;
    // A thread that has just ended is not an error.
    if (sched_setaffinity(thread, sizeof(cores), &cores) != 0 && errno != ESRCH) {
      return absl::InternalError(absl::StrCat("core ", core, ": ", std::strerror(errno)));
    }
  }
  if (error) return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
  return absl::OkStatus();
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace tandem::bench
