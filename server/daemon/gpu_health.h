#ifndef TANDEM_SERVER_DAEMON_GPU_HEALTH_H_
#define TANDEM_SERVER_DAEMON_GPU_HEALTH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/scheduler/gpu_monitor.h"
#include "server/workers/gpu_prober.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// Takes GPUs out of service that do not work any more: those of which their driver says so, and those on
// which a worker failed and that then fail a check. Thread-safe.
class GpuHealth {
 public:
  // What it needs of the daemon's other parts, which outlive it. Called on any thread, and on its own.
  struct Parts {
    // All devices, each with the jobs that hold it.
    std::function<std::vector<v1::Device>()> devices;
    // GpuMonitor::Refresh.
    std::function<absl::Status(v1::GpuStatus*, absl::Duration limit)> ask_driver;
    // Has a device, "devices/gpu:0", take no more jobs; the message is for people.
    std::function<void(const std::string& device, const std::string& message)> exclude;
    // Gives back the lease of a job's attempt whose worker crashed.
    std::function<void(const std::string& job_id, int32_t attempt)> release_lease;
    // Has a job's watchers told.
    std::function<void(const std::string& job_id, const std::string& text)> tell;
  };

  // How checks are made; GpuProber::Options::ask_driver is set here.
  GpuHealth(GpuProber::Options checks, Parts parts);

  // The worker of a job's attempt crashed. What of its GPUs does not work any more must not be the next
  // job's, so that its lease goes when they have been checked; at once where it has none. Never waits for a
  // driver.
  void OnCrash(const std::string& job_id, int32_t attempt);
  // What a driver says of itself: the log has it, and where a GPU should not be used any more, its jobs.
  void OnDriverError(const GpuMonitor::Error& error);

  // What is still to be checked then keeps no lease. After GpuMonitor::Stop, as a driver may hang.
  // Idempotent.
  void Stop() { prober_.Stop(); }

 private:
  absl::Status AskDriver(const v1::Device& device) const;
  void Exclude(const std::string& device, const std::string& reason) const;

  const Parts parts_;
  GpuProber prober_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_GPU_HEALTH_H_
