#ifndef TANDEM_SERVER_SCHEDULER_GANG_REQUEST_H_
#define TANDEM_SERVER_SCHEDULER_GANG_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The devices that a job needs, all or none.
struct GangRequest {
  // UNSPECIFIED: GPUs if the machine has enough of them, otherwise CPU devices.
  v1::DeviceKind device_kind = v1::DEVICE_KIND_UNSPECIFIED;
  // The number of different devices; at least 1.
  int devices = 1;
  // The exact devices ("devices/cpu:0") in the order of ranks, `devices` of them. Empty: any.
  std::vector<std::string> names;
  // The number of replicas with a load above 0, at least `devices`. Replica r runs on device r modulo
  // `devices`. With several workers, replica r runs on device r * devices / replicas: a worker has a block of
  // ranks and so needs as few devices as possible.
  int replicas = 1;
  int workers = 1;
  // The planned memory of one replica, in bytes.
  int64_t replica_memory_bytes = 0;

  // Returns the planned memory on the device with the most replicas, in bytes.
  int64_t memory_bytes() const { return (replicas + devices - 1) / devices * replica_memory_bytes; }
};

// Returns the job's request. The spec must be admitted: with defaults and full device names.
GangRequest GangRequestOf(const v1::Job& job);

// Returns the device of each replica (Job.devices), in the order of ranks.
std::vector<std::string> DevicesOfRanks(const GangRequest& gang, const std::vector<std::string>& devices);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_GANG_REQUEST_H_
