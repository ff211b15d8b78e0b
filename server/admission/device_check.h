#ifndef TANDEM_SERVER_ADMISSION_DEVICE_CHECK_H_
#define TANDEM_SERVER_ADMISSION_DEVICE_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/training/plan.h"
#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Parses words such as "gpu,cpu": the device kinds for jobs that name no kind, best first. Empty `text` means
// "gpu,cpu". INVALID_ARGUMENT for any other word or a repeated word.
absl::StatusOr<std::vector<v1::DeviceKind>> ParseDevicePriority(absl::string_view text);

// The owner's limits on GPU memory, in bytes. 0: the default in v1::GpuOptions.
struct GpuLimits {
  // The maximum of one replica, and the default of jobs that set no limit.
  int64_t memory_bytes = 0;
  // The scratch memory of jobs that set no limit.
  int64_t workspace_bytes = 0;
};

// Checks a job against the machine's devices. Immutable.
class DeviceCheck {
 public:
  // `devices` are all devices of the machine. `priority` lists the kinds for jobs that name no kind, best
  // first.
  DeviceCheck(std::vector<v1::Device> devices, std::vector<v1::DeviceKind> priority,
              GpuLimits gpu_limits = {});

  // Sets the owner's limits in a job that gets GPUs and sets no limits. Call after defaults are filled in and
  // before the job is planned. INVALID_ARGUMENT for the field "memory_limit_bytes" if the job wants more.
  absl::Status FillGpuLimits(v1::JobSpec* spec) const;

  // Replaces "all" by the names of all devices of the kind, and sets the count if unset. Call before defaults
  // are filled in. INVALID_ARGUMENT for the field "devices" if the machine has no such device.
  absl::Status ResolveAll(v1::Replicas* replicas) const;

  // Returns the kind of devices that the job gets. `replicas` must have its defaults.
  v1::DeviceKind KindFor(const v1::Replicas& replicas) const;

  // Sets the kind of devices that the job gets. Returns the memory that one replica needs on a device, in
  // bytes. On kinds that use the host's memory, the result includes the replica's share of the job's host
  // memory. `spec` must have its defaults. FAILED_PRECONDITION with a reason if the job can never run on this
  // machine.
  absl::StatusOr<int64_t> Check(const JobPlan& plan, v1::JobSpec* spec) const;

  // Checks that this kind of device offers the plan's ops. FAILED_PRECONDITION with a reason if not.
  static absl::Status CheckOps(const JobPlan& plan, v1::DeviceKind kind);

 private:
  int Count(v1::DeviceKind kind) const;
  absl::Status CheckNumber(const v1::Replicas& replicas, v1::DeviceKind kind) const;
  absl::Status CheckNames(const v1::Replicas& replicas) const;
  // Checks that devices of the kind compute in this precision.
  absl::Status CheckPrecision(v1::Precision precision, v1::DeviceKind kind) const;
  // Checks that enough devices, or the named devices, have the memory. `what_for` names the memory's use in
  // the message; may be empty.
  absl::Status CheckMemory(const v1::Replicas& replicas, v1::DeviceKind kind, int64_t replica_bytes,
                           const std::string& what_for) const;

  const std::vector<v1::Device> devices_;
  const std::vector<v1::DeviceKind> priority_;
  const GpuLimits gpu_limits_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_DEVICE_CHECK_H_
