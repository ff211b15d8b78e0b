// Trainings that are cancelled or cannot continue.

#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/backend/forwarding_device.h"
#include "engine/backends/device_factory.h"
#include "engine/base/field_violations.h"
#include "engine/base/mutex.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/training/trainer_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

TEST(TrainerFailureTest, CancelEndsTheRunAfterAStep) {
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    v1::JobSpec spec = SmallLenet(replicas);
    spec.mutable_training()->set_epochs(1000000);
    TrainingRecorder recorder;
    std::unique_ptr<Trainer> trainer = *Trainer::Create(OptionsFor(spec, "cpu", &recorder));
    recorder.on_progress = [&] {
      if (recorder.progress.size() == 10) trainer->Cancel();
    };
    EXPECT_EQ(trainer->Run().code(), absl::StatusCode::kCancelled);
    EXPECT_LT(recorder.progress.size(), 13);
  }
}

TEST(TrainerFailureTest, CancelEndsValidationToo) {
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    TrainingRecorder recorder;
    std::unique_ptr<Trainer> trainer = *Trainer::Create(OptionsFor(SmallLenet(replicas), "cpu", &recorder));
    recorder.on_progress = [&] {
      if (recorder.progress.size() == 8) trainer->Cancel();
    };
    EXPECT_EQ(trainer->Run().code(), absl::StatusCode::kCancelled);
    EXPECT_TRUE(recorder.epochs.empty());
  }
}

TEST(TrainerFailureTest, CancelFromAnotherThreadAtAnyTime) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_training()->set_epochs(1000000);
  for (int round = 0; round < 5; ++round) {
    TrainingRecorder recorder;
    std::unique_ptr<Trainer> trainer = *Trainer::Create(OptionsFor(spec, "cpu", &recorder));
    std::thread canceller([&, round] {
      if (round > 0) std::this_thread::yield();
      trainer->Cancel();
    });
    EXPECT_EQ(trainer->Run().code(), absl::StatusCode::kCancelled);
    canceller.join();
  }
}

TEST(TrainerFailureTest, ALossThatIsNotANumberEndsTheRun) {
  for (const int replicas : {1, 2}) {
    v1::JobSpec spec = SmallLenet(replicas);
    spec.mutable_training()->mutable_optimizer()->mutable_nesterov()->set_learning_rate(1e30);
    TrainingRecorder recorder;
    const absl::Status status = Train(spec, "cpu", &recorder);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the training loss is"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(" at step "));
  }
}

// Only this check sees the last update: no later step and no validation measures it.
TEST(TrainerFailureTest, AModelThatIsNotFiniteAfterTheLastStepIsNoSuccess) {
  for (const char* kind : {"reference", "cpu"}) {
    for (const int replicas : {1, 2}) {
      v1::JobSpec spec = SmallLenet(replicas);
      spec.mutable_dataset()->mutable_synthetic()->set_train_samples(8);
      spec.mutable_dataset()->mutable_synthetic()->set_validation_samples(0);
      spec.mutable_training()->set_epochs(1);
      spec.mutable_training()->mutable_optimizer()->mutable_nesterov()->set_learning_rate(1e100);
      TrainingRecorder recorder;
      const absl::Status status = Train(spec, kind, &recorder);
      EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("is not finite after step 1,"));
      EXPECT_EQ(recorder.epochs.size(), 1);
    }
  }
}

TEST(TrainerFailureTest, SaysWhereAReplicaTakesMoreMemoryThanPlanned) {
  TrainingRecorder within;
  ASSERT_TRUE(Train(SmallLenet(2), "cpu", &within).ok());
  EXPECT_TRUE(within.notices.empty()) << within.notices[0];

  // The reference backend gives every value its own memory.
  v1::JobSpec spec = SmallLenet(1);
  spec.mutable_dataset()->mutable_synthetic()->set_train_samples(20000);
  spec.mutable_training()->set_global_batch_size(20000);
  spec.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_REFERENCE);
  TrainingRecorder recorder;
  std::unique_ptr<Trainer> trainer = *Trainer::Create(OptionsFor(spec, "reference", &recorder));
  recorder.on_notice = [&] { trainer->Cancel(); };
  EXPECT_EQ(trainer->Run().code(), absl::StatusCode::kCancelled);
  ASSERT_EQ(recorder.notices.size(), 1);
  EXPECT_THAT(recorder.notices[0], HasSubstr("more than the"));
}

TEST(TrainerFailureTest, TheModelSaysTheJobAsItWasSubmitted) {
  Trainer::Options options = OptionsFor(SmallLenet(1), "cpu", nullptr);
  options.spec.mutable_dataset()->Clear();
  options.spec.mutable_dataset()->set_name("by-name");
  std::unique_ptr<Trainer> trainer = *Trainer::Create(std::move(options));
  ASSERT_TRUE(trainer->Run().ok());
  const std::string path = testing::TempDir() + "/submitted.safetensors";
  ASSERT_TRUE(trainer->SaveModel(path).ok());
  const std::string job = ReadSafetensors(path)->metadata.at("job");
  EXPECT_THAT(job, HasSubstr(R"("dataset":{"name":"by-name"})"));
  EXPECT_THAT(job, HasSubstr("conv2d_1"));
}

TEST(TrainerFailureTest, DataThatCannotBeReadIsDataLoss) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_dataset()->mutable_idx()->set_train_images("/nonexistent");
  spec.mutable_dataset()->mutable_idx()->set_train_labels("/nonexistent");
  TrainingRecorder recorder;
  const absl::Status status = Train(spec, "cpu", &recorder);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("idx.train_images: /nonexistent does not exist"));
  EXPECT_EQ(recorder.started, 0);
}

TEST(TrainerFailureTest, DataThatDoesNotFitIsDataLoss) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_dataset()->mutable_synthetic()->set_classes(5);
  TrainingRecorder recorder;
  const absl::Status status = Train(spec, "cpu", &recorder);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the loss needs [5]"));
}

// A table with a feature and a target in each row.
std::string WriteTable(const std::string& name, const std::string& rows) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << "x,y\n" << rows;
  return path;
}

TEST(TrainerFailureTest, TargetsOutsideWhatTheLossTakesAreDataLoss) {
  const std::string good = WriteTable("good.csv", "1,0\n2,1\n3,0.25\n");
  const std::string above = WriteTable("above.csv", "1,0\n2,1\n3,2\n");
  const std::string below = WriteTable("below.csv", "1,0\n2,-0.5\n3,1\n");
  const auto train = [](const std::string& loss, const std::string& training, const std::string& validation) {
    TrainingRecorder recorder;
    return Train(
        FromText<v1::JobSpec>(absl::StrCat(
            "dataset { csv { train: '", training, "' validation: '", validation,
            "' targets: TARGET_KIND_VALUES } } model { input { shape: 1 } layers { dense { units: 1 } } } "
            "training { loss { ",
            loss, " } optimizer { sgd { learning_rate: 0.1 } } global_batch_size: 3 epochs: 1 }")),
        "cpu", &recorder);
  };
  for (const char* loss : {"binary_cross_entropy_with_logits {}", "kl_divergence {}"}) {
    SCOPED_TRACE(loss);
    const absl::Status taken = train(loss, good, good);
    EXPECT_TRUE(taken.ok()) << taken;
    absl::Status status = train(loss, above, good);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("cannot train on the training samples: their targets are from 0 to 2, but"));
    status = train(loss, good, below);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the validation samples: their targets are from -0.5 to 1, but"));
  }
  const absl::Status any_numbers = train("mse {}", above, below);
  EXPECT_TRUE(any_numbers.ok()) << any_numbers;
}

TEST(TrainerFailureTest, OptionsAreChecked) {
  v1::JobSpec spec = SmallLenet(2);
  Trainer::Options options = OptionsFor(spec, "cpu", nullptr);
  options.devices.pop_back();
  EXPECT_EQ(GetFieldViolations(Trainer::Create(options).status())[0].field, "replicas.count");
  options = OptionsFor(spec, "cpu", nullptr);
  options.spec.mutable_training()->set_epochs(-1);
  EXPECT_EQ(GetFieldViolations(Trainer::Create(options).status())[0].field, "training.epochs");
}

TEST(TrainerFailureTest, MemoryThatCannotBeHadEndsAllReplicas) {
  v1::JobSpec spec = SmallLenet(3);
  for (int bad = 0; bad < 3; ++bad) {
    Trainer::Options options = OptionsFor(spec, "cpu", nullptr);
    const std::string name = options.devices[bad].name();
    options.device_factory = [name](const v1::Device& device) {
      if (device.name() == name) throw std::bad_alloc();
      return OpenDevice(device.name(), {.threads = device.threads()});
    };
    const absl::Status status = (*Trainer::Create(options))->Run();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("replica ", bad, " on ", name, ": out of memory")));
  }
}

TEST(TrainerFailureTest, ADeviceThatCannotBeOpenedEndsAllReplicas) {
  v1::JobSpec spec = SmallLenet(3);
  for (int bad = 0; bad < 3; ++bad) {
    Trainer::Options options = OptionsFor(spec, "cpu", nullptr);
    options.devices[bad].set_name("devices/abacus:0");
    const absl::Status status = (*Trainer::Create(options))->Run();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("replica ", bad, " on devices/abacus:0")));
  }
}

// A place where several threads wait for each other, for a limited time.
class Meeting {
 public:
  explicit Meeting(int expected) : expected_(expected) {}
  absl::Status Join() {
    MutexLock lock(&mutex_);
    ++here_;
    const auto all_are_here = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return here_ >= expected_; };
    if (mutex_.AwaitWithTimeout(absl::Condition(&all_are_here), absl::Minutes(1))) return absl::OkStatus();
    missed_ = true;
    return absl::DeadlineExceededError("the others were not waited for");
  }
  bool missed() {
    MutexLock lock(&mutex_);
    return missed_;
  }

 private:
  const int expected_;
  Mutex mutex_;
  int here_ ABSL_GUARDED_BY(mutex_) = 0;
  bool missed_ ABSL_GUARDED_BY(mutex_) = false;
};

// A CPU device whose Wait waits for the Wait of the others. It imitates a GPU whose work waits for the work
// of other ranks.
class MeetingDevice final : public ForwardingDevice {
 public:
  MeetingDevice(std::unique_ptr<Device> inner, bool compiles, Meeting* meeting)
      : ForwardingDevice(std::move(inner)), compiles_(compiles), meeting_(meeting) {}

  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, Variables* variables) override {
    if (!compiles_) return absl::InternalError("it has failed");
    return ForwardingDevice::Compile(graph, variables);
  }
  absl::Status Wait() override { return meeting_->Join(); }

 private:
  const bool compiles_;
  Meeting* const meeting_;
};

// An error aborts the group first. Otherwise the device's wait would block on ranks that wait for the failed
// rank.
TEST(TrainerFailureTest, AnErrorIsToldBeforeTheDeviceIsWaitedFor) {
  Meeting meeting(2);
  Trainer::Options options = OptionsFor(SmallLenet(2), "cpu", nullptr);
  options.watchdog = absl::Seconds(30);
  const std::string bad = options.devices[1].name();
  options.device_factory = [&](const v1::Device& device) -> absl::StatusOr<std::unique_ptr<Device>> {
    absl::StatusOr<std::unique_ptr<Device>> inner = OpenDevice(device.name(), {.threads = device.threads()});
    if (!inner.ok()) return inner.status();
    return std::make_unique<MeetingDevice>(*std::move(inner), device.name() != bad, &meeting);
  };
  const absl::Status status = (*Trainer::Create(options))->Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("replica 1 on ", bad, ": it has failed")));
  EXPECT_FALSE(meeting.missed()) << "a device was waited for while another rank waited for its own";
}

}  // namespace
}  // namespace tandem
