#include "server/scheduler/gang_request.h"

#include <algorithm>

#include "engine/training/replica_spec.h"

namespace tandem {

GangRequest GangRequestOf(const v1::Job& job) {
  const v1::Replicas& replicas = job.spec().replicas();
  GangRequest gang;
  gang.device_kind = replicas.device_kind();
  gang.devices = DeviceCountOf(replicas);
  gang.names = UsedDevices(replicas);
  gang.replicas = static_cast<int>(LoadsOf(replicas).size());
  gang.workers = std::max(1, replicas.workers());
  gang.replica_memory_bytes = job.planned_memory_bytes();
  return gang;
}

std::vector<std::string> DevicesOfRanks(const GangRequest& gang, const std::vector<std::string>& devices) {
  std::vector<std::string> ranks;
  const int count = static_cast<int>(devices.size());
  for (int rank = 0; rank < gang.replicas; ++rank) {
    ranks.push_back(devices[gang.workers > 1 ? rank * count / gang.replicas : rank % count]);
  }
  return ranks;
}

}  // namespace tandem
