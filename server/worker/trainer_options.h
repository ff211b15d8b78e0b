#ifndef TANDEM_SERVER_WORKER_TRAINER_OPTIONS_H_
#define TANDEM_SERVER_WORKER_TRAINER_OPTIONS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "engine/training/trainer.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// The file of the best model in the output folder.
inline constexpr char kBestFile[] = "best.safetensors";

// Returns the folder of checkpoints and artifacts.
std::string OutputFolderOf(const internal::v1::WorkerLaunch& launch);

// Returns a worker's options of training, without an observer. Several workers connect their ranks over TCP.
Trainer::Options TrainerOptionsOf(const internal::v1::WorkerLaunch& launch, DeviceFactory device_factory);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_TRAINER_OPTIONS_H_
