// Job specs at admission, in binary form (after a "b") and as text. An admitted spec must be admitted again
// unchanged.

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "server/admission/admission.h"
#include "server/admission/idx_files.h"
#include "server/admission/read_dataset.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"

namespace tandem {
namespace {

constexpr char kPlain[] = R"(
  name: "shapes"
  dataset { name: "shapes" augmentation { horizontal_flip {} } augmentation { translation { x: 1 y: 1 } } }
  model {
    input { shape: [1, 4, 4] }
    layers { conv2d { filters: 2 kernel: [3, 3] padding_mode: PADDING_MODE_SAME activation: ACTIVATION_RELU } }
    layers { residual { layers { conv2d { filters: 2 kernel: [3, 3] padding_mode: PADDING_MODE_SAME } } layers { batch_norm {} } } }
    layers { max_pool2d { size: [2, 2] } }
    layers { repeat { count: 2 layers { dense { units: 3 } } } }
  }
  training {
    loss { softmax_cross_entropy { label_smoothing: 0.1 class_weights: [1, 2, 0.5] } }
    optimizer { adamw { learning_rate: 0.1 weight_decay: 0.01 } clip { norm: 1 } groups { biases_and_norms: true weight_decay: 0 } }
    schedule { cosine {} }
    global_batch_size: 6
    epochs: 2
    metrics: [METRIC_ACCURACY, METRIC_AUC]
    early_stopping { metric: "accuracy" patience: 2 }
    weight_average {}
    batch_norm_statistics: BATCH_NORM_STATISTICS_POPULATION
  }
  replicas { count: 2 worker_load: [1, 0.5] parameter_averaging { every_iterations: 2 } }
  checkpoints { every_steps: 3 }
  frozen_layers: "conv2d_1"
)";
constexpr char kTemplate[] = R"(
  dataset {
    synthetic { shape: [3, 4, 4] classes: 4 train_samples: 12 validation_samples: 4 }
    augmentation { resized_crop { min_area: 0.3 max_ratio: 2 } }
    augmentation { saturation { strength: 0.4 } } augmentation { hue { strength: 0.1 } }
  }
  model { template { mlp { units: [5, 4] } } }
  training {
    loss { softmax_cross_entropy {} } optimizer { sgd { learning_rate: 0.1 } clip { value: 1 } }
    schedule { piecewise { drop_factor: 0.1 drop_period: 2 } warmup { length: 2 } }
    global_batch_size: 6 steps: 10 accumulation_steps: 2 precision: PRECISION_FLOAT64
  }
  replicas { device_kind: DEVICE_KIND_REFERENCE devices: ["reference:0"] }
)";
constexpr char kSequence[] = R"(
  dataset { synthetic { shape: [8] vocabulary: 16 train_samples: 32 validation_samples: 8 } }
  model { template { mini_gpt { depth: 1 heads: 2 width: 8 } } }
  training {
    loss { softmax_cross_entropy { ignore_index: 0 } } optimizer { muon { learning_rate: 0.01 } }
    global_batch_size: 4 epochs: 1 metrics: METRIC_PERPLEXITY
  }
)";

std::vector<v1::Device> Devices() {
  std::vector<v1::Device> devices;
  for (const v1::DeviceKind kind : {v1::DEVICE_KIND_CPU, v1::DEVICE_KIND_CPU, v1::DEVICE_KIND_REFERENCE}) {
    v1::Device device;
    device.set_name(absl::StrCat("devices/", kind == v1::DEVICE_KIND_CPU ? "cpu:" : "reference:",
                                 kind == v1::DEVICE_KIND_CPU ? devices.size() : 0));
    device.set_kind(kind);
    device.set_index(kind == v1::DEVICE_KIND_CPU ? static_cast<int>(devices.size()) : 0);
    device.set_memory_bytes(int64_t{1} << 30);
    device.add_precisions(kind == v1::DEVICE_KIND_CPU ? v1::PRECISION_FLOAT32 : v1::PRECISION_FLOAT64);
    devices.push_back(device);
  }
  return devices;
}

// Admission of a daemon with a single data set.
struct Machine {
  Machine() { WriteNamedSet(InputFolder() + "/data/shapes"); }

  LocalDatasetReader reader;
  const DatasetCatalog catalog{{InputFolder() + "/data"}, &reader};
  const WeightsFinder weights{&catalog,
                              [](const std::string&) { return absl::NotFoundError("no such job"); }};
  const SpecAdmission admission{&catalog, &weights, Devices()};
};

const Machine& TheMachine() {
  static const auto* const machine = new Machine();
  return *machine;
}

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const char* text : {kPlain, kTemplate, kSequence}) {
    v1::JobSpec spec;
    // A misspelt or refused seed would be useless.
    if (!google::protobuf::TextFormat::ParseFromString(text, &spec)) std::abort();
    if (const auto admitted = TheMachine().admission.Admit(spec); !admitted.ok()) {
      std::fprintf(stderr, "%s\n", admitted.status().ToString().c_str());
      std::abort();
    }
    seeds.push_back(text);
    seeds.push_back("b" + spec.SerializeAsString());
  }
  return seeds;
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silencer;
  tandem::v1::JobSpec spec;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const bool parsed = !input.empty() && input[0] == 'b'
                          ? spec.ParseFromString(input.substr(1))
                          : google::protobuf::TextFormat::ParseFromString(input, &spec);
  if (!parsed) return 0;
  const auto admitted = tandem::TheMachine().admission.Admit(spec);
  if (!admitted.ok()) return 0;
  const auto again = tandem::TheMachine().admission.Admit(admitted->spec);
  if (!again.ok() || again->planned_memory_bytes != admitted->planned_memory_bytes) {
    std::fprintf(stderr, "admitted, but not again: %s\n%s\n", again.status().ToString().c_str(),
                 admitted->spec.DebugString().c_str());
    __builtin_trap();
  }
  return 0;
}
