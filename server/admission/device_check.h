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

// The kinds of device that a job without a wish is given, the best first, from words such as "gpu,cpu"; these
// where `text` is empty. INVALID_ARGUMENT for any other word, and for one that comes twice.
absl::StatusOr<std::vector<v1::DeviceKind>> ParseDevicePriority(absl::string_view text);

// What a machine's owner lets a job take of GPUs; 0: as v1::GpuOptions says.
struct GpuLimits {
  // The most that one replica may take, and what jobs get that do not say.
  int64_t memory_bytes = 0;
  // The scratch memory of jobs that do not say.
  int64_t workspace_bytes = 0;
};

// What a machine's devices say to jobs. Immutable.
class DeviceCheck {
 public:
  // `devices` are all that the machine has, `priority` the kinds for jobs without a wish.
  DeviceCheck(std::vector<v1::Device> devices, std::vector<v1::DeviceKind> priority,
              GpuLimits gpu_limits = {});

  // Puts the owner's limits into a job that gets GPUs and does not say. Before it is planned, after defaults
  // are filled in. INVALID_ARGUMENT for the field "memory_limit_bytes" where the job wants more.
  absl::Status FillGpuLimits(v1::JobSpec* spec) const;

  // Puts the names of all devices of the kind in place of "all", and their count where it is left out. Before
  // defaults are filled in. INVALID_ARGUMENT for the field "devices" where there are none.
  absl::Status ResolveAll(v1::Replicas* replicas) const;

  // The kind of devices that a job gets. `replicas` has its defaults.
  v1::DeviceKind KindFor(const v1::Replicas& replicas) const;

  // Settles the kind of devices that the job gets, and returns what a replica needs on one, with its part of
  // what the job has in the host's memory where that is the device's. `spec` has its defaults.
  // FAILED_PRECONDITION, with a reason, where it could never run here.
  absl::StatusOr<int64_t> Check(const JobPlan& plan, v1::JobSpec* spec) const;

 private:
  int Count(v1::DeviceKind kind) const;
  absl::Status CheckNumber(const v1::Replicas& replicas, v1::DeviceKind kind) const;
  absl::Status CheckNames(const v1::Replicas& replicas) const;
  // That the devices of the kind compute in this precision.
  absl::Status CheckPrecision(v1::Precision precision, v1::DeviceKind kind) const;
  // That as many devices as the job needs, or those that it names, have the memory. `what_for` says what it
  // is for, or nothing.
  absl::Status CheckMemory(const v1::Replicas& replicas, v1::DeviceKind kind, int64_t replica_bytes,
                           const std::string& what_for) const;

  const std::vector<v1::Device> devices_;
  const std::vector<v1::DeviceKind> priority_;
  const GpuLimits gpu_limits_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_DEVICE_CHECK_H_
