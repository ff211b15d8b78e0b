// Trainings whose loads are measured, and trainings on devices that run their work later.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/backend/forwarding_communicator.h"
#include "engine/backend/forwarding_device.h"
#include "engine/base/faulty_env.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/training/plan.h"
#include "engine/training/resume_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(MeasuredLoadsTest, LoadsAreMeasuredOnceAndKept) {
  v1::JobSpec spec = SmallJob(2);
  spec.mutable_replicas()->set_auto_worker_load(true);
  FaultyEnv env;
  Recorder first;
  const Result paused = TrainWithFiles(spec, "cpu", &env, &first, [](Trainer& trainer, int64_t step) {
    if (step == 20) trainer.Pause();
  });
  ASSERT_EQ(paused.outcome.reason, v1::STATE_REASON_PAUSE_REQUESTED) << paused.status;
  ASSERT_THAT(first.loads, SizeIs(1));
  EXPECT_EQ(first.loads[0].step(), 13);
  ASSERT_EQ(first.loads[0].replicas_size(), 2);
  double largest = 0;
  for (const v1::ReplicaLoad& replica : first.loads[0].replicas()) {
    EXPECT_GT(replica.samples_per_second(), 0);
    largest = std::max(largest, replica.load());
  }
  EXPECT_EQ(largest, 1);
  Recorder second;
  const Result resumed = TrainWithFiles(spec, "cpu", &env, &second);
  ASSERT_TRUE(resumed.status.ok()) << resumed.status;
  EXPECT_THAT(second.loads, IsEmpty());
  // The model has the loads by which it was trained.
  const absl::StatusOr<SafetensorsContents> model = ParseSafetensors(*env.ReadFile(kModel));
  ASSERT_TRUE(model.ok());
  EXPECT_THAT(model->metadata.at("job"), HasSubstr("\"worker_load\":["));
  for (int rank = 0; rank < 2; ++rank) {
    const double load = first.loads[0].replicas(rank).load();
    const double sum = first.loads[0].replicas(0).load() + first.loads[0].replicas(1).load();
    EXPECT_NEAR(second.epochs.back().replicas(rank).load(), load / sum, 1e-12);
  }
}

// A device that runs its work later and takes time for each sample. Destroying a device of its group while
// another has work fails the test, because the work may use the other's memory.
class LateDevice final : public ForwardingDevice {
 public:
  using Group = std::vector<LateDevice*>;

  LateDevice(std::unique_ptr<Device> device, absl::Duration sample, std::shared_ptr<Group> group)
      : ForwardingDevice(std::move(device)), sample_(sample), group_(std::move(group)) {
    group_->push_back(this);
  }
  ~LateDevice() override {
    for (const LateDevice* device : *group_) EXPECT_EQ(device->owed_, absl::ZeroDuration());
    group_->erase(std::find(group_->begin(), group_->end(), this));
  }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, Variables* variables) override {
    absl::StatusOr<std::unique_ptr<Executable>> executable = ForwardingDevice::Compile(graph, variables);
    if (!executable.ok()) return executable;
    const Shape& input = graph.value(graph.inputs()[0]).shape;
    return std::unique_ptr<Executable>(new Late(this, *std::move(executable), input[0] * sample_));
  }
  absl::Status Wait() override {
    absl::SleepFor(std::exchange(owed_, absl::ZeroDuration()));
    return absl::OkStatus();
  }
  std::unique_ptr<Communicator> WrapCommunicator(Communicator* host) override {
    return std::make_unique<Behind>(this, host);
  }

  int runs_left = 0;  // Until a run fails. Below 1: none fails.

 private:
  class Late final : public ForwardingExecutable {
   public:
    Late(LateDevice* device, std::unique_ptr<Executable> executable, absl::Duration taken)
        : ForwardingExecutable(std::move(executable)), device_(device), taken_(taken) {}
    absl::Status Run(absl::Span<const void* const> inputs, Communicator* communicator) override {
      if (--device_->runs_left == 0) return absl::DataLossError("it has failed");
      device_->owed_ += taken_;
      const absl::Status status = ForwardingExecutable::Run(inputs, communicator);
      device_->owed_ += absl::Milliseconds(1);
      return status;
    }

   private:
    LateDevice* const device_;
    const absl::Duration taken_;
  };

  // A reduction begins when the device has reached it.
  class Behind final : public ForwardingCommunicator {
   public:
    Behind(LateDevice* device, Communicator* host) : ForwardingCommunicator(host), device_(device) {}
    absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
      if (absl::Status status = device_->Wait(); !status.ok()) return status;
      return inner().AllReduce(buffer, op);
    }

   private:
    LateDevice* const device_;
  };

  const absl::Duration sample_;
  const std::shared_ptr<Group> group_;
  absl::Duration owed_;
};

// Trains on such devices. Devices of odd ranks are four times as fast. If `fails_at` is not 0, the last
// device fails at that run.
absl::Status TrainLate(const v1::JobSpec& spec, int fails_at, TrainingRecorder* recorder) {
  Trainer::Options options = OptionsFor(spec, "cpu", recorder);
  const auto group = std::make_shared<LateDevice::Group>();
  const size_t count = options.devices.size();
  options.device_factory = [make = options.device_factory, group, count,
                            fails_at](const v1::Device& device) -> absl::StatusOr<std::unique_ptr<Device>> {
    absl::StatusOr<std::unique_ptr<Device>> made = make(device);
    if (!made.ok()) return made;
    const bool is_fast = group->size() % 2 == 1;
    auto late = std::make_unique<LateDevice>(*std::move(made), absl::Milliseconds(is_fast ? 5 : 20), group);
    if (group->size() == count) late->runs_left = fails_at;
    return late;
  };
  const absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(options));
  return trainer.ok() ? (*trainer)->Run() : trainer.status();
}

TEST(MeasuredLoadsTest, LoadsAreThoseOfDevicesThatReturnBeforeTheyAreDone) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_training()->set_epochs(2);
  spec.mutable_replicas()->set_auto_worker_load(true);
  TrainingRecorder recorder;
  const absl::Status status = TrainLate(spec, /*fails_at=*/0, &recorder);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_THAT(recorder.loads, SizeIs(1));
  ASSERT_EQ(recorder.loads[0].replicas_size(), 2);
  // 50 and 200 samples a second, less on a busy machine.
  EXPECT_LT(recorder.loads[0].replicas(0).samples_per_second(), 60);
  EXPECT_GT(recorder.loads[0].replicas(0).samples_per_second(), 5);
  EXPECT_EQ(recorder.loads[0].replicas(1).load(), 1);
  EXPECT_LT(recorder.loads[0].replicas(0).load(), 0.7);
}

// A fourth of a batch is a single sample, which has no variance.
TEST(MeasuredLoadsTest, MeasuredLoadsLeaveNoReplicaASampleThatBatchNormRefuses) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_dataset()->mutable_synthetic()->set_train_samples(64);
  *spec.mutable_model()->add_layers() = FromText<v1::Layer>("batch_norm {}");
  spec.mutable_training()->set_global_batch_size(4);
  spec.mutable_training()->set_epochs(2);
  spec.mutable_replicas()->set_auto_worker_load(true);
  const DatasetInfo data = {
      .shape = Shape({1, 12, 12}), .classes = 4, .train_samples = 64, .validation_samples = 27};
  const absl::StatusOr<JobPlan> plan = PlanJob(spec, data);
  EXPECT_TRUE(plan.ok()) << plan.status();
  TrainingRecorder recorder;
  const absl::Status status = TrainLate(spec, /*fails_at=*/0, &recorder);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_THAT(recorder.loads, SizeIs(1));
  EXPECT_GT(recorder.loads[0].replicas(1).samples_per_second(),
            2 * recorder.loads[0].replicas(0).samples_per_second());
  for (const v1::ReplicaLoad& replica : recorder.loads[0].replicas()) EXPECT_EQ(replica.load(), 1);
  EXPECT_THAT(recorder.notices, Contains(HasSubstr("all replicas keep equal shares")));
  EXPECT_EQ(recorder.epochs.back().replicas(0).samples(), 32);
}

// Work on a device may use the memory of others: the end of a job waits for all devices.
TEST(MeasuredLoadsTest, NoDeviceGoesBeforeAllAreDone) {
  v1::JobSpec spec = SmallLenet(3);
  spec.mutable_training()->set_epochs(1);
  TrainingRecorder recorder;
  EXPECT_EQ(TrainLate(spec, /*fails_at=*/4, &recorder).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tandem
