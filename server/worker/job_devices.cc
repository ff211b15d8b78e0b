#include "server/worker/job_devices.h"

#include <algorithm>

#include "engine/training/plan.h"
#include "engine/training/replica_spec.h"

namespace tandem {

DeviceOptions DeviceOptionsOf(const v1::JobSpec& spec) {
  DeviceOptions options;
  options.compute = ComputeTypeOf(spec.training());
  options.allow_tf32 = spec.training().allow_tf32();
  options.deterministic = spec.training().deterministic();
  options.memory_limit_bytes = spec.gpu().memory_limit_bytes();
  options.workspace_limit_bytes = spec.gpu().workspace_limit_bytes();
  options.max_threads_per_block = spec.gpu().max_threads_per_block();
  options.max_blocks = spec.gpu().max_blocks();
  const int devices = std::max(1, DeviceCountOf(spec.replicas()));
  options.replicas_per_device = (static_cast<int>(LoadsOf(spec.replicas()).size()) + devices - 1) / devices;
  return options;
}

DeviceFactory DevicesFor(const v1::JobSpec& spec) {
  return [options = DeviceOptionsOf(spec)](const v1::Device& device) {
    DeviceOptions own = options;
    own.threads = device.threads();
    return OpenDevice(device.name(), own);
  };
}

}  // namespace tandem
