// Compares trainings with samples on the GPU with trainings that load samples on the host. They must have the
// same losses after every step, and so the same batches, changes and parameters.

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/cuda_device.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/base/faulty_env.h"
#include "engine/training/trainer.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCheckpoints[] = "/d/checkpoints";

v1::JobSpec Parse(const std::string& text) {
  v1::JobSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  return spec;
}

// Returns a small LeNet on 61 images: 7 batches of 8 and a batch of 5 in an epoch. `more` is added to the
// spec.
v1::JobSpec SmallLenet(const std::string& more = "") {
  v1::JobSpec spec = Parse(R"(
    dataset {
      synthetic { shape: [1, 12, 12] classes: 4 train_samples: 61 validation_samples: 27 }
    }
    model {
      input { shape: [1, 12, 12] }
      layers { conv2d { filters: 4 kernel: 3 } }
      layers { max_pool2d { size: 2 } }
      layers { dense { units: 8 activation: ACTIVATION_RELU } }
      layers { dropout { rate: 0.2 } }
      layers { dense { units: 4 } }
    }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { nesterov { learning_rate: 0.05 momentum: 0.9 } }
      schedule { cosine {} }
      global_batch_size: 8
      epochs: 2
      seed: 7
      report { every_steps: 1 }
    }
    replicas { device_kind: DEVICE_KIND_GPU })");
  spec.MergeFrom(Parse(more));
  return spec;
}

constexpr char kAllChanges[] = R"(
  dataset {
    augmentation { horizontal_flip {} }
    augmentation { vertical_flip { probability: 0.3 } }
    augmentation { crop { padding: 2 fill: FILL_MODE_REFLECT } }
    augmentation { translation { x: 3 y: 1 fill: FILL_MODE_EDGE } }
    augmentation { rotation { degrees: 20 fill: FILL_MODE_EDGE } }
    augmentation { scale { min: 0.8 max: 1.3 } }
    augmentation { erase { probability: 0.5 height: 3 width: 4 } }
    augmentation { brightness { strength: 0.4 } }
    augmentation { contrast { strength: 0.5 } }
    augmentation { resized_crop { min_area: 0.2 } }
  })";

class Recorder final : public TrainerObserver {
 public:
  void OnProgress(const v1::Progress& report) override {
    losses.push_back(report.training().loss());
    rates.push_back(report.learning_rate());
    steps.push_back(report.step());
    if (on_report) on_report(report.step());
  }
  void OnEpoch(const v1::EpochSummary& epoch) override {
    for (const v1::Evaluation* evaluation : {&epoch.training(), &epoch.validation()}) {
      epochs.push_back(evaluation->loss());
      const std::map<std::string, double> sorted(evaluation->metrics().begin(), evaluation->metrics().end());
      for (const auto& [name, value] : sorted) epochs.push_back(value);
    }
  }
  void OnNotice(absl::string_view message) override { notices.emplace_back(message); }

  std::vector<double> losses, rates, epochs;
  std::vector<int64_t> steps;
  std::vector<std::string> notices;
  std::function<void(int64_t step)> on_report;
};

// A GPU without memory for samples.
class FullDevice final : public Device {
 public:
  explicit FullDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}
  const std::string& name() const override { return device_->name(); }
  DType dtype() const override { return device_->dtype(); }
  std::unique_ptr<Variables> CreateVariables(const Variables* like) override {
    return device_->CreateVariables(like);
  }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, Variables* variables) override {
    if (graph.FindVariable("data/training_samples") != kNoValue) {
      return absl::ResourceExhaustedError("no room for samples");
    }
    return device_->Compile(graph, variables);
  }
  std::unique_ptr<Communicator> WrapCommunicator(Communicator* host) override {
    return device_->WrapCommunicator(host);
  }

 private:
  const std::unique_ptr<Device> device_;
};

struct Course {
  Recorder recorder;
  absl::Status status;
  TrainingOutcome outcome;
  bool full = false;  // The GPU has no memory for samples.
  std::function<void(Trainer&, int64_t step)> on_report;
  FaultyEnv* env = nullptr;  // The file system of the checkpoints.

  void Run(const v1::JobSpec& spec) {
    Trainer::Options options;
    options.spec = spec;
    options.dataset = spec.dataset();
    for (int rank = 0; rank < std::max(1, spec.replicas().count()); ++rank) {
      options.devices.emplace_back().set_name("devices/gpu:0");
    }
    const int replicas = static_cast<int>(options.devices.size());
    options.device_factory = [full = full,
                              replicas](const v1::Device& device) -> absl::StatusOr<std::unique_ptr<Device>> {
      auto opened =
          CudaDevice::Open(device.name(), 0, {.deterministic = true, .replicas_per_device = replicas});
      if (!opened.ok()) return opened.status();
      if (full) return std::make_unique<FullDevice>(*std::move(opened));
      return *std::move(opened);
    };
    options.observer = &recorder;
    if (env != nullptr) {
      options.env = env;
      options.checkpoint_folder = kCheckpoints;
    }
    absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(options));
    if (status = trainer.status(); !status.ok()) return;
    if (on_report) recorder.on_report = [&](int64_t step) { on_report(**trainer, step); };
    status = (*trainer)->Run();
    outcome = (*trainer)->outcome();
  }
};

void SetHost(v1::JobSpec* spec) { spec->mutable_gpu()->set_data(v1::GpuOptions::DATA_PLACEMENT_HOST_MEMORY); }

class ResidentTest : public testing::TestWithParam<int> {
 public:
  // Expects the same training as with samples on the host.
  static void ExpectAsOnTheHost(v1::JobSpec spec) {
    Course resident;
    resident.Run(spec);
    ASSERT_TRUE(resident.status.ok()) << resident.status;
    EXPECT_THAT(resident.recorder.notices, Not(Contains(HasSubstr("samples stay"))));
    SetHost(&spec);
    Course host;
    host.Run(spec);
    ASSERT_TRUE(host.status.ok()) << host.status;
    EXPECT_EQ(resident.recorder.steps, host.recorder.steps);
    EXPECT_EQ(resident.recorder.losses, host.recorder.losses);
    EXPECT_EQ(resident.recorder.rates, host.recorder.rates);
    EXPECT_EQ(resident.recorder.epochs, host.recorder.epochs);
  }
};

TEST_P(ResidentTest, TrainsAsFromTheHost) { ExpectAsOnTheHost(SmallLenet()); }

TEST_P(ResidentTest, ChangesImagesAsTheHostDoes) { ExpectAsOnTheHost(SmallLenet(kAllChanges)); }

TEST_P(ResidentTest, ChangesColoursAsTheHostDoes) {
  v1::JobSpec spec = SmallLenet(R"(
    dataset {
      augmentation { resized_crop {} }
      augmentation { saturation { strength: 0.7 } }
      augmentation { hue { strength: 0.5 } }
    })");
  spec.mutable_dataset()->mutable_synthetic()->set_shape(0, 3);
  spec.mutable_model()->mutable_input()->set_shape(0, 3);
  ExpectAsOnTheHost(spec);
}

TEST_P(ResidentTest, OfSeveralReplicas) {
  ExpectAsOnTheHost(SmallLenet("replicas { count: 2 } dataset { augmentation { crop { padding: 1 } } }"));
}

TEST_P(ResidentTest, InPartsOfABatch) {
  ExpectAsOnTheHost(
      SmallLenet("training { accumulation_steps: 2 } dataset { augmentation { horizontal_flip {} } }"));
}

// The last validation has them.
TEST_P(ResidentTest, WithStatisticsOfAllSamples) {
  for (const char* more : {"", "training { accumulation_steps: 2 }", "replicas { count: 2 }",
                           "replicas { count: 2 } model { layers { batch_norm { sync: true } } layers { "
                           "dense { units: 4 } } }"}) {
    SCOPED_TRACE(more);
    v1::JobSpec spec = SmallLenet(R"(
      model { layers { batch_norm {} } layers { dense { units: 4 } } }
      training { batch_norm_statistics: BATCH_NORM_STATISTICS_POPULATION }
      dataset { augmentation { crop { padding: 2 } } augmentation { horizontal_flip {} } })");
    spec.MergeFrom(Parse(more));
    ExpectAsOnTheHost(spec);
  }
}

TEST_P(ResidentTest, WithMetricsOfTheHost) {
  ExpectAsOnTheHost(SmallLenet("training { metrics: METRIC_ACCURACY metrics: METRIC_F1 }"));
}

TEST_P(ResidentTest, ValuesAndNumbersToo) {
  v1::JobSpec spec = SmallLenet();
  spec.mutable_dataset()->mutable_synthetic()->clear_classes();
  spec.mutable_dataset()->mutable_synthetic()->set_values(4);
  spec.mutable_training()->mutable_loss()->mutable_mse();
  ExpectAsOnTheHost(spec);
}

// With any number of steps at a time, the reports after the same steps are the same.
TEST_P(ResidentTest, SeveralStepsAtATimeAreTheSameSteps) {
  v1::JobSpec spec = SmallLenet("dataset { augmentation { crop { padding: 2 } } }");
  spec.mutable_training()->mutable_report()->set_every_steps(5);
  std::vector<Course> courses(3);
  const std::vector<int> given = {1, 3, 64};
  for (size_t i = 0; i < courses.size(); ++i) {
    spec.mutable_gpu()->set_steps_per_launch(given[i]);
    courses[i].Run(spec);
    ASSERT_TRUE(courses[i].status.ok()) << courses[i].status;
    EXPECT_THAT(courses[i].recorder.steps, ElementsAre(5, 8, 13, 16));
    EXPECT_EQ(courses[i].recorder.losses, courses[0].recorder.losses);
    EXPECT_EQ(courses[i].recorder.epochs, courses[0].recorder.epochs);
  }
}

TEST_P(ResidentTest, ReplicasThatStepAloneMeetWhereTheyDo) {
  v1::JobSpec spec = SmallLenet("replicas { count: 2 parameter_averaging { every_iterations: 3 } }");
  spec.mutable_training()->mutable_report()->set_every_steps(6);
  spec.mutable_gpu()->set_steps_per_launch(4);
  ExpectAsOnTheHost(spec);
}

TEST_P(ResidentTest, GoesOnInMidEpoch) {
  v1::JobSpec spec =
      SmallLenet("dataset { augmentation { crop { padding: 2 } } augmentation { horizontal_flip {} } }");
  spec.mutable_training()->mutable_report()->set_every_steps(2);
  spec.mutable_gpu()->set_steps_per_launch(2);
  Course whole;
  whole.Run(spec);
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  FaultyEnv env;
  Course begun;
  begun.env = &env;
  begun.on_report = [](Trainer& trainer, int64_t step) {
    if (step == 2) trainer.Pause();
  };
  begun.Run(spec);
  ASSERT_TRUE(begun.status.ok()) << begun.status;
  ASSERT_EQ(begun.outcome.reason, v1::STATE_REASON_PAUSE_REQUESTED);
  Course resumed;
  resumed.env = &env;
  resumed.Run(spec);
  ASSERT_TRUE(resumed.status.ok()) << resumed.status;
  std::vector<double> losses = begun.recorder.losses;
  ASSERT_EQ(begun.recorder.steps, std::vector<int64_t>({2, 4}));
  losses.insert(losses.end(), resumed.recorder.losses.begin(), resumed.recorder.losses.end());
  EXPECT_EQ(losses, whole.recorder.losses);
}

TEST_P(ResidentTest, WhereThereIsNoMemorySamplesStayOnTheHost) {
  v1::JobSpec spec = SmallLenet();
  Course course;
  course.full = true;
  course.Run(spec);
  ASSERT_TRUE(course.status.ok()) << course.status;
  EXPECT_THAT(course.recorder.notices, Contains(HasSubstr("no room for samples")));
  Course host;
  SetHost(&spec);
  host.Run(spec);
  EXPECT_EQ(course.recorder.losses, host.recorder.losses);

  spec.mutable_gpu()->set_data(v1::GpuOptions::DATA_PLACEMENT_GPU_MEMORY);
  Course must;
  must.full = true;
  must.Run(spec);
  EXPECT_TRUE(absl::IsResourceExhausted(must.status)) << must.status;
}

TEST_P(ResidentTest, WhatIsNotOfferedStaysOnTheHostAndIsSaid) {
  Course course;
  course.Run(SmallLenet("training { epochs: 1 } dataset { augmentation { mixup {} } }"));
  ASSERT_TRUE(course.status.ok()) << course.status;
  EXPECT_THAT(course.recorder.notices, Contains(HasSubstr("mixup")));
}

// A single notice says that the GPU gets steps one by one.
TEST_P(ResidentTest, StepsThatAreNotRecordedAreTold) {
  setenv("TANDEM_CUDA_GRAPHS", "0", 1);
  Course course;
  course.Run(SmallLenet("replicas { count: 2 } training { epochs: 1 }"));
  unsetenv("TANDEM_CUDA_GRAPHS");
  ASSERT_TRUE(course.status.ok()) << course.status;
  EXPECT_THAT(course.recorder.notices,
              ElementsAre(HasSubstr("not as a CUDA graph: TANDEM_CUDA_GRAPHS is 0")));
}

std::vector<int> Devices() {
  if (const absl::StatusOr<int> count = cuda::CountDevices(); !count.ok() || *count == 0) {
    std::printf("SKIPPED: ResidentTest: %s\n",
                count.ok() ? "there is no GPU" : std::string(count.status().message()).c_str());
    return {};
  }
  return {0};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ResidentTest);
INSTANTIATE_TEST_SUITE_P(Gpu, ResidentTest, testing::ValuesIn(Devices()));

}  // namespace
}  // namespace tandem
