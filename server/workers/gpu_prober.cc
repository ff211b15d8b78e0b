#include "server/workers/gpu_prober.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "server/workers/exit_codes.h"
#include "server/workers/worker_launcher.h"
#include "server/workers/worker_log.h"
#include "server/workers/worker_process.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// The result for a device whose state could not be determined.
absl::Status NotKnown(const v1::Device& device, absl::string_view why) {
  spdlog::warn("cannot check device={}, so it counts as working: {}", device.name(), std::string(why));
  return absl::OkStatus();
}

}  // namespace

GpuProber::GpuProber(Options options)
    : options_(std::move(options)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MutexLock lock(&stop_mutex_);
  thread_ = std::thread([this] { Run(); });
}

GpuProber::~GpuProber() { Stop(); }

bool GpuProber::Stopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

void GpuProber::Post(std::vector<v1::Device> devices, Found found, Done done) {
  {
    MutexLock lock(&mutex_);
    if (!stopping_) {
      tasks_.push_back({std::move(devices), std::move(found), std::move(done)});
      return;
    }
  }
  for (const v1::Device& device : devices) found(device, absl::CancelledError("the daemon is shutting down"));
  done();
}

void GpuProber::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  const uint64_t one = 1;
  // Writing fails only if the eventfd is already readable.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  MutexLock lock(&stop_mutex_);
  if (thread_.joinable()) thread_.join();
}

void GpuProber::Run() {
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      const auto work = [this]()
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !tasks_.empty(); };
      mutex_.Await(absl::Condition(&work));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    for (const v1::Device& device : task.devices) task.found(device, Probe(device));
    task.done();
  }
}

absl::Status GpuProber::Probe(const v1::Device& device) {
  if (Stopping()) return absl::CancelledError("the daemon is shutting down");
  if (options_.ask_driver != nullptr) {
    const absl::Status says = options_.ask_driver(device);
    if (absl::IsCancelled(says)) return says;
    if (!says.ok()) return absl::UnavailableError(says.message());
  }
  const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  const UniqueFd errors(memfd_create("gpu-probe", MFD_CLOEXEC));
  if (!nothing.valid() || !errors.valid())
    return NotKnown(device, "cannot open /dev/null or a file in memory");
  ProcessGroup::Command command;
  command.program = options_.worker_program;
  command.arguments = {"--probe", device.name()};
  AddSandboxArguments(options_.sandbox, &command.arguments);
  command.environment = WorkerEnvironment({device}, /*algorithms_folder=*/"", options_.gpu_uuids);
  const absl::StatusOr<std::unique_ptr<ProcessGroup>> process =
      ProcessGroup::Start(command, {nothing.get(), nothing.get(), errors.get()});
  if (!process.ok()) return NotKnown(device, process.status().message());
  const absl::Duration deadline = Clock::Real()->Elapsed() + options_.time_limit;
  pollfd events[] = {{(*process)->pidfd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  int ready = 0;
  do {
    const absl::Duration left = std::max(deadline - Clock::Real()->Elapsed(), absl::ZeroDuration());
    ready = poll(events, 2, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
  } while (ready < 0 && errno == EINTR);
  if ((events[0].revents & POLLIN) == 0) {
    // A process whose GPU hangs may not end at once. Do not wait for it.
    (*process)->Kill();
    if (events[1].revents != 0) return absl::CancelledError("the daemon is shutting down");
    return absl::UnavailableError(
        absl::StrCat("its check did not end within ", absl::FormatDuration(options_.time_limit)));
  }
  const ProcessGroup::End end = (*process)->Reap();
  if (end.exit_code == kWorkerDone) return absl::OkStatus();
  const std::string line = LastLineOf(ContentOrEmpty(absl::StrCat("/proc/self/fd/", errors.get())));
  if (end.exit_code == kWorkerBadLaunch || end.exit_code == kWorkerNotConfined) return NotKnown(device, line);
  return absl::UnavailableError(absl::StrCat(
      "its check failed: ", line.empty() ? absl::StrCat("its process ", DescribeEnd(end)) : line));
}

}  // namespace tandem
