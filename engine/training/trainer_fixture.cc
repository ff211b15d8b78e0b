#include "engine/training/trainer_fixture.h"

#include "absl/strings/str_cat.h"
#include "engine/backends/device_factory.h"
#include "engine/training/replica_spec.h"

namespace tandem {

// A small LeNet on 61 synthetic samples: 7 batches of 8 and one of 5 in an epoch.
v1::JobSpec SmallLenet(int replicas) {
  v1::JobSpec spec = Parse<v1::JobSpec>(R"(
    dataset {
      synthetic { shape: [1, 12, 12] classes: 4 train_samples: 61 validation_samples: 27 }
    }
    model {
      input { shape: [1, 12, 12] }
      layers { conv2d { filters: 4 kernel: 3 } }
      layers { max_pool2d { size: 2 } }
      layers { conv2d { filters: 6 kernel: 2 } }
      layers { max_pool2d { size: 2 } }
      layers { dense { units: 16 activation: ACTIVATION_RELU } }
      layers { dense { units: 4 } }
    }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { nesterov { learning_rate: 0.05 momentum: 0.9 weight_decay: 0.001 } }
      global_batch_size: 8
      epochs: 3
      seed: 7
      report { every_steps: 1 }
    })");
  spec.mutable_replicas()->set_count(replicas);
  return spec;
}

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
