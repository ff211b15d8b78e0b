#ifndef TANDEM_SERVER_WORKER_TRAINER_OPTIONS_H_
#define TANDEM_SERVER_WORKER_TRAINER_OPTIONS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "engine/training/trainer.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// The model with the best result, in the job's folder.
inline constexpr char kBestFile[] = "best.safetensors";

// What a worker trains by, without an observer. Where it is one of several, their ranks come together by TCP.
Trainer::Options TrainerOptionsOf(const internal::v1::WorkerLaunch& launch, DeviceFactory device_factory);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_TRAINER_OPTIONS_H_
