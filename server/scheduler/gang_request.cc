#include "server/scheduler/gang_request.h"

#include <algorithm>

namespace tandem {

GangRequest GangRequestOf(const v1::Job& job) {
  const v1::Replicas& replicas = job.spec().replicas();
  GangRequest gang;
  gang.device_kind = replicas.device_kind();
  gang.replicas = std::max(1, replicas.count());
  gang.replica_memory_bytes = job.planned_memory_bytes();
  gang.names.assign(replicas.devices().begin(), replicas.devices().end());
  if (!gang.names.empty()) {
    gang.devices = static_cast<int>(gang.names.size());
    gang.replicas = std::max(gang.replicas, gang.devices);
  } else {
    const int each = std::max(1, replicas.replicas_per_device());
    gang.devices = (gang.replicas + each - 1) / each;
  }
  return gang;
}

std::vector<std::string> DevicesOfRanks(const GangRequest& gang, const std::vector<std::string>& devices) {
  std::vector<std::string> ranks;
  for (int rank = 0; rank < gang.replicas; ++rank) ranks.push_back(devices[rank % devices.size()]);
  return ranks;
}

}  // namespace tandem
