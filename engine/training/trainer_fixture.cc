#include "engine/training/trainer_fixture.h"

#include "absl/strings/str_cat.h"
#include "engine/backends/device_factory.h"
#include "engine/training/replica_spec.h"

namespace tandem {

Trainer::Options OptionsFor(const v1::JobSpec& spec, const std::string& kind, TrainerObserver* observer) {
  Trainer::Options options;
  options.spec = spec;
  options.dataset = spec.dataset();
  for (size_t rank = 0; rank < LoadsOf(spec.replicas()).size(); ++rank) {
    options.devices.emplace_back().set_name(absl::StrCat("devices/", kind, ":", rank));
    options.devices.back().set_threads(1);
  }
  options.device_factory = [](const v1::Device& device) {
    return OpenDevice(device.name(), {.threads = device.threads()});
  };
  options.observer = observer;
  return options;
}

absl::Status Train(const v1::JobSpec& spec, const std::string& kind, TrainingRecorder* recorder,
                   const std::string& model_path) {
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(OptionsFor(spec, kind, recorder));
  if (!trainer.ok()) return trainer.status();
  const absl::Status status = (*trainer)->Run();
  if (status.ok() && !model_path.empty()) return (*trainer)->SaveModel(model_path);
  return status;
}

}  // namespace tandem
