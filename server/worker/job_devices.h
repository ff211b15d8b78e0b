#ifndef TANDEM_SERVER_WORKER_JOB_DEVICES_H_
#define TANDEM_SERVER_WORKER_JOB_DEVICES_H_

#include "engine/backends/device_factory.h"
#include "engine/training/trainer.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Returns the job's precision, TF32, determinism and GPU limits as options of devices.
DeviceOptions DeviceOptionsOf(const v1::JobSpec& spec);

// Opens devices with DeviceOptionsOf(spec) and each device's number of threads.
DeviceFactory DevicesFor(const v1::JobSpec& spec);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_JOB_DEVICES_H_
