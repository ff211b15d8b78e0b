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
#include "engine/training/small_training.h"
#include "engine/training/trainer.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Returns whether there is a GPU. Prints a line if there is none.
bool HasGpu() {
  const absl::StatusOr<int> count = cuda::CountDevices();
  if (count.ok() && *count > 0) return true;
  std::printf("SKIPPED: Float16Test: %s\n",
              count.ok() ? "there is no GPU" : std::string(count.status().message()).c_str());
  return false;
}

v1::JobSpec Job(int replicas) {
  v1::JobSpec spec = SmallLenet(replicas);
  spec.mutable_dataset()->mutable_synthetic()->clear_validation_samples();
  spec.mutable_training()->mutable_optimizer()->mutable_nesterov()->set_learning_rate(0.02);
  return spec;
}

// On one GPU, whichever the number of replicas.
TrainingRecorder TrainOnGpu(const v1::JobSpec& spec, DType compute) {
  TrainingRecorder recorder;
  Trainer::Options options;
  options.spec = spec;
  options.dataset = spec.dataset();
  for (int rank = 0; rank < spec.replicas().count(); ++rank) {
    options.devices.emplace_back().set_name(absl::StrCat("devices/gpu:", rank));
  }
  options.observer = &recorder;
  const int replicas = static_cast<int>(options.devices.size());
  options.device_factory = [=](const v1::Device& device) -> absl::StatusOr<std::unique_ptr<Device>> {
    return CudaDevice::Open(device.name(), 0, {.compute = compute, .replicas_per_device = replicas});
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

void ExpectNear(const TrainingRecorder& actual, const TrainingRecorder& expected, double tolerance) {
  const std::vector<double> losses = actual.losses();
  const std::vector<double> wanted = expected.losses();
  ASSERT_EQ(losses.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(std::fabs(losses[i] - wanted[i]) <= tolerance * wanted[0])
        << "step " << i + 1 << ": the loss is " << losses[i] << ", not " << wanted[i];
  }
}

TEST(Float16Test, TrainsAsFloat32Does) {
  if (!HasGpu()) return;
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    const v1::JobSpec spec = Job(replicas);
    const TrainingRecorder wide = TrainOnGpu(spec, DType::kFloat32);
    const TrainingRecorder half = TrainOnGpu(Scaled(spec, 4096, 10), DType::kFloat16);
    // Rounding grows from step to step.
    ExpectNear(half, wide, 3e-2);
    ASSERT_FALSE(half.progress.empty());
    EXPECT_EQ(half.progress[0].loss_scale(), 4096);
    EXPECT_EQ(half.progress.back().loss_scale(), 16384);
    for (const v1::EpochSummary& epoch : half.epochs) EXPECT_EQ(epoch.skipped_steps(), 0);
  }
}

// An overflow lowers the scale until nothing overflows, and changes nothing else.
TEST(Float16Test, AScaleThatIsTooLargeComesDown) {
  if (!HasGpu()) return;
  v1::JobSpec spec = Job(1);
  spec.mutable_training()->set_global_batch_size(61);
  spec.mutable_training()->set_shuffle(false);
  spec.mutable_training()->set_epochs(20);
  spec.mutable_training()->mutable_optimizer()->mutable_adam()->set_learning_rate(0.01);
  const TrainingRecorder wide = TrainOnGpu(spec, DType::kFloat32);
  const TrainingRecorder half = TrainOnGpu(Scaled(spec, 0x1p28, 1000), DType::kFloat16);
  ASSERT_EQ(half.epochs.size(), 20);
  const std::vector<double> losses = half.losses();
  const std::vector<double> wanted = wide.losses();
  size_t taken = 0;
  for (size_t i = 0; i < half.epochs.size(); ++i) {
    EXPECT_EQ(half.progress[i].loss_scale(),
              std::ldexp(1, 28 - static_cast<int>(i - taken + half.epochs[i].skipped_steps())));
    EXPECT_TRUE(std::fabs(losses[i] - wanted[taken]) <= 2e-2 * wanted[0]) << i << " " << losses[i];
    if (half.epochs[i].skipped_steps() == 0) ++taken;
  }
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 20);
}

}  // namespace
}  // namespace tandem
