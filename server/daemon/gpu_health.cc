#include "server/daemon/gpu_health.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/records.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// After a worker failed on a GPU, its driver has this long to answer. Otherwise the GPU is lost.
constexpr absl::Duration kDriverPatience = absl::Seconds(30);
// After this delay, the log says that the daemon waits for the driver.
constexpr absl::Duration kDriverDelay = absl::Seconds(2);

GpuProber::Options WithDriver(GpuProber::Options options,
                              std::function<absl::Status(const v1::Device&)> ask_driver) {
  options.ask_driver = std::move(ask_driver);
  return options;
}

}  // namespace

GpuHealth::GpuHealth(GpuProber::Options checks, Parts parts)
    : parts_(std::move(parts)),
      prober_(WithDriver(std::move(checks), [this](const v1::Device& device) { return AskDriver(device); })) {
}

absl::Status GpuHealth::AskDriver(const v1::Device& device) const {
  v1::GpuStatus status = device.gpu();
  absl::Status answer = parts_.ask_driver(&status, kDriverDelay);
  if (!answer.ok() && !absl::IsCancelled(answer)) {
    spdlog::warn(
        "device={} is not free yet: its driver reports an error, and is asked again for up to {}: {}",
        device.name(), absl::FormatDuration(kDriverPatience), std::string(answer.message()));
    answer = parts_.ask_driver(&status, kDriverPatience);
  }
  if (answer.ok() || absl::IsCancelled(answer)) return answer;
  return absl::UnavailableError(absl::StrCat("its driver now says: ", answer.message(), ". See dmesg"));
}

void GpuHealth::Exclude(const std::string& device, const std::string& reason) const {
  const std::string message = absl::StrCat(reason, " When it is repaired: tandem devices resume ",
                                           device.substr(device.find('/') + 1));
  spdlog::error("device excluded device={}: {}", device, message);
  parts_.exclude(device, message);
}

void GpuHealth::OnCrash(const std::string& job_id, int32_t attempt) {
  std::vector<v1::Device> doubtful;
  for (v1::Device& device : parts_.devices()) {
    const auto& jobs = device.jobs();
    if (!device.has_gpu() || std::find(jobs.begin(), jobs.end(), JobName(job_id)) == jobs.end()) continue;
    // An excluded device already has a reason.
    if (device.state() == v1::DEVICE_STATE_EXCLUDED) continue;
    spdlog::info("checking device={} before another job gets it: the worker of job={} failed on it",
                 device.name(), job_id);
    doubtful.push_back(std::move(device));
  }
  // Without GPUs to check, do not wait behind the checks of other jobs' GPUs.
  if (doubtful.empty()) return parts_.release_lease(job_id, attempt);
  prober_.Post(
      std::move(doubtful),
      [this, job_id](const v1::Device& device, const absl::Status& found) {
        if (found.ok()) {
          spdlog::info("device={} passed its check after the worker of job={} failed on it", device.name(),
                       job_id);
        } else if (!absl::IsCancelled(found)) {
          Exclude(device.name(), absl::StrCat("The worker of \"", JobName(job_id), "\" failed on it, and ",
                                              found.message(), "."));
        }
      },
      [this, job_id, attempt] { parts_.release_lease(job_id, attempt); });
}

void GpuHealth::OnDriverError(const GpuMonitor::Error& error) {
  for (const v1::Device& device : parts_.devices()) {
    if (device.gpu().uuid() != error.uuid) continue;
    const std::string text = absl::StrCat("XID ", error.error.xid(), ": ", error.error.message());
    spdlog::log(error.is_of_hardware ? spdlog::level::err : spdlog::level::warn,
                "the driver reports an error of device={}: {}", device.name(), text);
    if (!error.is_of_hardware || device.state() == v1::DEVICE_STATE_EXCLUDED) return;
    Exclude(device.name(),
            absl::StrCat("Its driver reported XID ", error.error.xid(), ". ", error.error.message()));
    for (const std::string& job : device.jobs()) {
      parts_.tell(JobId(job),
                  absl::StrCat("The driver reports an error of ", device.name(), ", ", text,
                               " Other jobs will not get the device; this job's results may be wrong."));
    }
  }
}

}  // namespace tandem
