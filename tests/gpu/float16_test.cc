// Whole trainings in float16, beside the same in float32.

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/cuda_device.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/training/trainer.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Whether there is a GPU; says where there is none.
bool HasGpu() {
  const absl::StatusOr<int> count = cuda::CountDevices();
  if (count.ok() && *count > 0) return true;
  std::printf("SKIPPED: Float16Test: %s\n",
              count.ok() ? "there is no GPU" : std::string(count.status().message()).c_str());
  return false;
}

// A small LeNet on 61 samples: 8 steps in an epoch.
v1::JobSpec SmallLenet(int replicas) {
  v1::JobSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    dataset { synthetic { shape: [1, 12, 12] classes: 4 train_samples: 61 } }
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
      optimizer { nesterov { learning_rate: 0.02 momentum: 0.9 weight_decay: 0.001 } }
      global_batch_size: 8
      epochs: 3
      seed: 7
      report { every_steps: 1 }
    })",
                                                            &spec));
  spec.mutable_replicas()->set_count(replicas);
  return spec;
}

// Everything that a training said.
struct Recorder : TrainerObserver {
  void OnProgress(const v1::Progress& report) override { progress.push_back(report); }
  void OnEpoch(const v1::EpochSummary& epoch) override { epochs.push_back(epoch); }
  double loss(size_t step) const { return progress[step].training().loss(); }

  std::vector<v1::Progress> progress;
  std::vector<v1::EpochSummary> epochs;
};

// On one GPU, whichever the number of replicas.
Recorder TrainOnGpu(const v1::JobSpec& spec, DType compute) {
  Recorder recorder;
  Trainer::Options options;
  options.spec = spec;
  options.dataset = spec.dataset();
  for (int rank = 0; rank < spec.replicas().count(); ++rank) {
    options.devices.emplace_back().set_name(absl::StrCat("devices/gpu:", rank));
  }
  options.observer = &recorder;
  options.device_factory = [compute](const v1::Device& device) -> absl::StatusOr<std::unique_ptr<Device>> {
    return CudaDevice::Open(device.name(), 0, {.compute = compute});
  };
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(options));
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  if (!trainer.ok()) return recorder;
  const absl::Status status = (*trainer)->Run();
  EXPECT_TRUE(status.ok()) << status;
  return recorder;
}

v1::JobSpec Scaled(v1::JobSpec spec, double scale, int64_t growth_interval) {
  spec.mutable_training()->set_precision(v1::PRECISION_FLOAT16);
  spec.mutable_training()->mutable_loss_scaling()->set_initial_scale(scale);
  spec.mutable_training()->mutable_loss_scaling()->set_growth_interval(growth_interval);
  return spec;
}

void ExpectNear(const Recorder& actual, const Recorder& expected, double tolerance) {
  ASSERT_EQ(actual.progress.size(), expected.progress.size());
  for (size_t i = 0; i < expected.progress.size(); ++i) {
    const double error = std::fabs(actual.loss(i) - expected.loss(i));
    EXPECT_TRUE(error <= tolerance * expected.loss(0))
        << "step " << i + 1 << ": the loss is " << actual.loss(i) << ", not " << expected.loss(i);
  }
}

TEST(Float16Test, TrainsAsFloat32Does) {
  if (!HasGpu()) return;
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    const v1::JobSpec spec = SmallLenet(replicas);
    const Recorder wide = TrainOnGpu(spec, DType::kFloat32);
    const Recorder half = TrainOnGpu(Scaled(spec, 4096, 10), DType::kFloat16);
    // Rounding grows from step to step.
    ExpectNear(half, wide, 3e-2);
    ASSERT_FALSE(half.progress.empty());
    EXPECT_EQ(half.progress[0].loss_scale(), 4096);
    EXPECT_EQ(half.progress.back().loss_scale(), 16384);
    for (const v1::EpochSummary& epoch : half.epochs) EXPECT_EQ(epoch.skipped_steps(), 0);
  }
}

// What overflows makes the scale smaller until it does not, and nothing else.
TEST(Float16Test, AScaleThatIsTooLargeComesDown) {
  if (!HasGpu()) return;
  v1::JobSpec spec = SmallLenet(1);
  spec.mutable_training()->set_global_batch_size(61);
  spec.mutable_training()->set_shuffle(false);
  spec.mutable_training()->set_epochs(20);
  spec.mutable_training()->mutable_optimizer()->mutable_adam()->set_learning_rate(0.01);
  const Recorder wide = TrainOnGpu(spec, DType::kFloat32);
  const Recorder half = TrainOnGpu(Scaled(spec, 0x1p28, 1000), DType::kFloat16);
  ASSERT_EQ(half.epochs.size(), 20);
  size_t taken = 0;
  for (size_t i = 0; i < half.epochs.size(); ++i) {
    EXPECT_EQ(half.progress[i].loss_scale(),
              std::ldexp(1, 28 - static_cast<int>(i - taken + half.epochs[i].skipped_steps())));
    const double error = std::fabs(half.loss(i) - wide.loss(taken));
    EXPECT_TRUE(error <= 2e-2 * wide.loss(0)) << i << " " << half.loss(i);
    if (half.epochs[i].skipped_steps() == 0) ++taken;
  }
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 20);
}

}  // namespace
}  // namespace tandem
