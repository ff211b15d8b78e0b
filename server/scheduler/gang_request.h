#ifndef TANDEM_SERVER_SCHEDULER_GANG_REQUEST_H_
#define TANDEM_SERVER_SCHEDULER_GANG_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The devices that a job needs, all of them or none.
struct GangRequest {
  // UNSPECIFIED: GPUs where the machine has enough of them, else CPU devices.
  v1::DeviceKind device_kind = v1::DEVICE_KIND_UNSPECIFIED;
  // How many, each another one; at least 1.
  int devices = 1;
  // Exactly these, "devices/cpu:0", in the order of ranks; then there are as many as `devices`. Empty: any.
  std::vector<std::string> names;
  // Replicas that run on them, those of load 0 not counted, at least as many as devices; replica r is on
  // number r modulo `devices`, or, where they are spread over several workers, number r * devices / replicas:
  // a worker, which has a block of ranks, then needs as few devices as can be.
  int replicas = 1;
  int workers = 1;
  // Memory planned for one replica, in bytes.
  int64_t replica_memory_bytes = 0;

  // Memory planned on the device with the most replicas, in bytes.
  int64_t memory_bytes() const { return (replicas + devices - 1) / devices * replica_memory_bytes; }
};

// What the job asks for. Its spec was admitted: defaults are filled in, devices have their full names.
GangRequest GangRequestOf(const v1::Job& job);

// The device of each replica, in the order of ranks, given the gang's devices; Job.devices.
std::vector<std::string> DevicesOfRanks(const GangRequest& gang, const std::vector<std::string>& devices);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_GANG_REQUEST_H_
