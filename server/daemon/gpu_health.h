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

// Takes a broken GPU out of service if its driver reports a hardware error. Also takes a GPU out of service
// if a worker crashed on the GPU and the GPU then fails a check. Thread-safe.
class GpuHealth {
 public:
  // The functions of other parts that GpuHealth uses. They must outlive GpuHealth. Called on any thread.
  struct Parts {
    // Returns all devices, each with its jobs.
    std::function<std::vector<v1::Device>()> devices;
    // GpuMonitor::Refresh.
    std::function<absl::Status(v1::GpuStatus*, absl::Duration limit)> ask_driver;
    // Excludes a device, such as "devices/gpu:0", from new jobs. The message is for people.
    std::function<void(const std::string& device, const std::string& message)> exclude;
    // Returns the lease of a job's attempt after its worker crashed.
    std::function<void(const std::string& job_id, int32_t attempt)> release_lease;
    // Sends a notice to a job's watchers.
    std::function<void(const std::string& job_id, const std::string& text)> tell;
  };

  // `checks` says how GPUs are checked. GpuHealth sets GpuProber::Options::ask_driver.
  GpuHealth(GpuProber::Options checks, Parts parts);

  // Handles the crash of a job's worker. Checks the attempt's GPUs, then returns the lease, so that no other
  // job gets a broken GPU. Returns the lease at once if the job has no GPU to check. Never waits for a
  // driver.
  void OnCrash(const std::string& job_id, int32_t attempt);
  // Logs an error that a driver reported. If the GPU can no longer be trusted, excludes the GPU and notifies
  // its jobs.
  void OnDriverError(const GpuMonitor::Error& error);

  // Cancels the remaining checks and returns their leases. Call after GpuMonitor::Stop, because a driver may
  // hang. Idempotent.
  void Stop() { prober_.Stop(); }

 private:
  absl::Status AskDriver(const v1::Device& device) const;
  void Exclude(const std::string& device, const std::string& reason) const;

  const Parts parts_;
  GpuProber prober_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_GPU_HEALTH_H_
