#include "server/admission/admission.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/tensor/tensor.h"
#include "engine/training/training_state.h"
#include "server/admission/admission_fixture.h"
#include "server/admission/idx_files.h"
#include "server/admission/remote_data.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

using AdmissionTest = AdmissionFixture;

TEST_F(AdmissionTest, ACheckpointFitsAndLeavesSomethingToTrain) {
  const auto weight = [](std::initializer_list<int64_t> shape) {
    return SafetensorsEntry{.dtype = DType::kFloat32, .shape = Shape(shape)};
  };
  SafetensorsHeader checkpoint;
  checkpoint.tensors = {{"shared/conv2d_1.weight", weight({2, 1, 3, 3})},
                        {"shared/conv2d_1.bias", weight({2})},
                        {"shared/dense_1.weight", weight({3, 2})},
                        {"shared/dense_1.bias", weight({3})}};
  // Three epochs of 16 steps. An epoch of 12 samples has two steps.
  TrainingState state;
  state.step = 48;
  state.steps_per_epoch = 16;
  checkpoint.metadata["state"] = ToJson(state);
  v1::JobSpec spec = Good();
  spec.mutable_training()->set_epochs(4);
  absl::StatusOr<AdmittedJob> job = admission_.Admit(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(admission_.CheckCheckpoint(*job, checkpoint).ok())
      << admission_.CheckCheckpoint(*job, checkpoint);
  job->spec.mutable_training()->set_epochs(3);
  const absl::Status nothing = admission_.CheckCheckpoint(*job, checkpoint);
  EXPECT_EQ(GetReason(nothing), "NOTHING_TO_TRAIN") << nothing;
  EXPECT_THAT(std::string(nothing.message()), HasSubstr("spec.training.epochs: is 3"));
  checkpoint.tensors.erase("shared/dense_1.bias");
  EXPECT_EQ(GetReason(admission_.CheckCheckpoint(*job, checkpoint)), "INVALID_SPEC");
}

TEST_F(AdmissionTest, TakesAGoodJobAndFillsInDefaults) {
  const absl::StatusOr<AdmittedJob> job = admission_.Admit(Good());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.model().layers(0).name(), "conv2d_1");
  EXPECT_EQ(job->spec.model().layers(2).name(), "dense_1");
  EXPECT_TRUE(job->spec.training().shuffle());
  EXPECT_EQ(job->spec.dataset().name(), "shapes");
  EXPECT_FALSE(job->spec.dataset().has_idx());
  EXPECT_GT(job->planned_memory_bytes, 0);
}

// Most jobs of a sweep share a plan. Fields outside the plan are still checked for each job.
TEST_F(AdmissionTest, JobsThatDifferInLittleAreCheckedEachForItself) {
  const absl::StatusOr<AdmittedJob> first = admission_.Admit(Good());
  ASSERT_TRUE(first.ok()) << first.status();
  v1::JobSpec spec = Good();
  spec.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.2);
  const absl::StatusOr<AdmittedJob> second = admission_.Admit(spec);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->spec.training().optimizer().sgd().learning_rate(), 0.2);
  EXPECT_EQ(second->planned_memory_bytes, first->planned_memory_bytes);
  EXPECT_EQ(second->planned_operations, first->planned_operations);
  spec.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(-1);
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.training.optimizer.sgd.learning_rate"));
  spec = Good();
  spec.mutable_training()->set_epochs(2);
  const absl::StatusOr<AdmittedJob> longer = admission_.Admit(spec);
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_EQ(longer->planned_operations, 2 * first->planned_operations);
}

TEST_F(AdmissionTest, ExpandsTemplatesForTheData) {
  v1::JobSpec spec = Good();
  spec.mutable_model()->Clear();
  spec.mutable_model()->mutable_template_()->mutable_mlp()->add_units(5);
  const absl::StatusOr<AdmittedJob> job = admission_.Admit(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::Model& model = job->spec.model();
  EXPECT_FALSE(model.has_template_());
  EXPECT_EQ(model.name(), "mlp");
  EXPECT_THAT(model.input().shape(), ElementsAre(1, 4, 4));
  ASSERT_EQ(model.layers_size(), 2);
  EXPECT_EQ(model.layers(0).name(), "dense_1");
  EXPECT_EQ(model.layers(1).dense().units(), 3);
  // An admitted spec is admitted again unchanged.
  const absl::StatusOr<AdmittedJob> again = admission_.Admit(job->spec);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->spec.SerializeAsString(), job->spec.SerializeAsString());

  // The number of classes follows from the data, so unknown data make no metric wrong.
  spec.mutable_model()->mutable_template_()->mutable_resnet18();
  spec.mutable_dataset()->set_name("shaeps");
  spec.mutable_training()->add_metrics(v1::METRIC_CONFUSION_MATRIX);
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.dataset.name"));
  spec.mutable_training()->clear_metrics();
  spec.mutable_model()->mutable_template_()->mutable_mlp()->add_units(5);
  spec.mutable_model()->mutable_template_()->mutable_mlp()->add_units(-1);
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.dataset.name", "spec.model.template.mlp.units[1]"));
}

TEST_F(AdmissionTest, StatisticsOfAllSamplesAreForNetworksThatHaveSome) {
  v1::JobSpec spec = Good();
  spec.mutable_training()->set_batch_norm_statistics(v1::BATCH_NORM_STATISTICS_POPULATION);
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.training.batch_norm_statistics"));
  v1::Residual& block = *spec.mutable_model()->mutable_layers()->Add()->mutable_residual();
  block.add_layers()->mutable_batch_norm();
  spec.mutable_model()->mutable_layers()->SwapElements(2, 3);
  const absl::StatusOr<AdmittedJob> with = admission_.Admit(spec);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->spec.training().batch_norm_statistics(), v1::BATCH_NORM_STATISTICS_POPULATION);
  spec.mutable_training()->clear_batch_norm_statistics();
  EXPECT_GT(with->planned_memory_bytes, admission_.Admit(spec)->planned_memory_bytes);
  spec.mutable_training()->set_batch_norm_statistics(v1::BATCH_NORM_STATISTICS_POPULATION);
  spec.mutable_training()->mutable_best_model()->set_export_best(true);
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.training.best_model.export_best"));
}

TEST_F(AdmissionTest, ChecksInitialWeightsAndFrozenLayers) {
  const auto with = [](const std::string& more) {
    v1::JobSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(absl::StrCat(kGoodJob, more), &spec));
    return spec;
  };
  EXPECT_THAT(FieldsOf(with("initial_weights { artifact { job: 'jobs/none' } }")),
              ElementsAre("spec.initial_weights.artifact.job"));
  EXPECT_THAT(FieldsOf(with("initial_weights { file: 'none' }")), ElementsAre("spec.initial_weights.file"));
  std::ofstream(data_ + "/no.safetensors") << "no";
  EXPECT_THAT(FieldsOf(with("initial_weights { file: 'no.safetensors' }")),
              ElementsAre("spec.initial_weights.file"));
  EXPECT_THAT(FieldsOf(with("initial_weights { file: 'none' layers: 'x' } frozen_layers: 'y'")),
              ElementsAre("spec.initial_weights.layers[0]", "spec.frozen_layers[0]"));
  EXPECT_TRUE(admission_.Admit(with("frozen_layers: 'conv2d_1'")).ok());
}

// The cache has one file for each URL.
class FakeCache : public RemoteData {
 public:
  explicit FakeCache(std::string folder) : folder_(std::move(folder)) {}
  void EnsureUrls(std::vector<FieldUrl>, const std::string&, absl::Duration, UrlsDone done) override {
    done(absl::UnimplementedError("not here"));
  }
  absl::StatusOr<std::string> LocalPath(const std::string& url, PathKind kind) const override {
    EXPECT_EQ(kind, PathKind::kFile);
    const std::string path = absl::StrCat(folder_, "/", url.substr(url.rfind('/') + 1));
    if (std::filesystem::exists(path)) return path;
    return absl::InvalidArgumentError("is not in the daemon's cache");
  }
  void FetchPublicSet(const std::string&, const std::string&, absl::Duration,
                      absl::AnyInvocable<void(absl::Status)> done) override {
    done(absl::OkStatus());
  }

 private:
  const std::string folder_;
};

TEST_F(AdmissionTest, WeightsByUrlAreThoseOfTheCache) {
  const std::string folder = FreshFolder();
  const FakeCache cache(folder);
  DatasetCatalog catalog({data_}, &reader_);
  catalog.SetRemote(&cache, data_);
  const WeightsFinder finder(&catalog, [](const std::string&) { return absl::NotFoundError(""); });
  const SpecAdmission admission(&catalog, &finder, Devices(2, 1));
  const auto refusal = [&](const std::string& url) {
    v1::JobSpec spec = Good();
    spec.mutable_initial_weights()->set_file(url);
    const std::vector<FieldViolation> found = GetFieldViolations(admission.Admit(spec).status());
    EXPECT_EQ(found.size(), 1) << url;
    EXPECT_EQ(found.at(0).field, "spec.initial_weights.file") << url;
    return found.at(0).description;
  };
  EXPECT_EQ(refusal("https://example.com/none"), "is not in the daemon's cache");
  // The file's place in the cache is not shown.
  std::ofstream(folder + "/page") << "<html><body>Please sign in</body></html>";
  EXPECT_THAT(refusal("https://example.com/page"), StartsWith("https://example.com/page: is a web page"));
  // Without a cache, nothing is fetched.
  v1::InitialWeights weights;
  weights.set_file("https://example.com/page?secret");
  EXPECT_THAT(std::string(weights_.Find(weights).status().message()),
              AllOf(HasSubstr("only by a daemon"), Not(HasSubstr("secret"))));
}

TEST_F(AdmissionTest, FindsUploadedWeightsByTheUploadsId) {
  std::vector<std::string> asked;
  const WeightsFinder finder(
      &catalog_, [](const std::string&) { return absl::NotFoundError(""); },
      [&](const UploadedFile& file) -> absl::StatusOr<std::string> {
        asked.push_back(absl::StrCat(file.upload, " ", file.path));
        if (file.path == "a/b") return "/the/file";
        return absl::InvalidArgumentError("is not whole");
      });
  const auto find = [&](const std::string& file) {
    v1::InitialWeights weights;
    weights.set_file(file);
    return finder.Find(weights);
  };
  ASSERT_TRUE(find("uploads/0123456789abcdef/a/b").ok());
  EXPECT_EQ(find("uploads/0123456789abcdef/a/b")->path, "/the/file");
  const std::vector<FieldViolation> found = GetFieldViolations(find("uploads/0123456789abcdef/c").status());
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].field, "initial_weights.file");
  EXPECT_EQ(found[0].description, "is not whole");
  EXPECT_THAT(asked, ElementsAre("0123456789abcdef a/b", "0123456789abcdef a/b", "0123456789abcdef c"));
  // Other paths are in data folders.
  std::filesystem::create_directories(data_ + "/uploads/0123456789ABCDEF");
  for (const char* path : {"uploads/x", "uploads/0123456789ABCDEF/y"}) {
    std::ofstream(data_ + "/" + path) << "x";
    EXPECT_TRUE(find(path).ok()) << path;
  }
  EXPECT_EQ(asked.size(), 3);
}

// Only the order of the samples counts, 4 bytes each, in the memory that CPU devices share.
TEST_F(AdmissionTest, DataInMemoryCountsOnceForAllReplicas) {
  v1::JobSpec spec = Good();
  spec.clear_dataset();
  v1::SyntheticSource* synthetic = spec.mutable_dataset()->mutable_synthetic();
  for (const int64_t extent : spec.model().input().shape()) synthetic->add_shape(extent);
  synthetic->set_classes(spec.model().layers().rbegin()->dense().units());
  synthetic->set_train_samples(1000);
  const auto planned = [&](int replicas) {
    spec.mutable_replicas()->set_count(replicas);
    const absl::StatusOr<AdmittedJob> job = admission_.Admit(spec);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->planned_memory_bytes : 0;
  };
  const int64_t small_alone = planned(1);
  const int64_t small_shared = planned(2);
  synthetic->set_train_samples(1000 + 6000000);
  EXPECT_EQ(planned(1) - small_alone, 4 * 6000000);
  EXPECT_EQ(planned(2) - small_shared, 4 * 6000000 / 2);
  // The order takes 1 GiB, too much for one device.
  synthetic->set_train_samples(int64_t{1} << 28);
  EXPECT_GT(planned(2), int64_t{1} << 29);
  spec.mutable_replicas()->set_count(1);
  EXPECT_EQ(GetReason(Refused(spec)), "TOO_LITTLE_MEMORY");
}

TEST_F(AdmissionTest, SamplesLieOnTheGpuWhereTheyFit) {
  v1::Device device;
  device.set_kind(v1::DEVICE_KIND_GPU);
  device.set_memory_bytes(int64_t{1} << 30);
  device.add_precisions(v1::PRECISION_FLOAT32);
  const SpecAdmission admission(&catalog_, &weights_, {device});
  v1::JobSpec spec = Good();
  spec.mutable_replicas()->set_count(1);
  spec.clear_dataset();
  v1::SyntheticSource* synthetic = spec.mutable_dataset()->mutable_synthetic();
  for (const int64_t extent : spec.model().input().shape()) synthetic->add_shape(extent);
  synthetic->set_classes(spec.model().layers().rbegin()->dense().units());
  synthetic->set_train_samples(1000000);
  const absl::StatusOr<AdmittedJob> fits = admission.Admit(spec);
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_FALSE(fits->spec.has_gpu());
  EXPECT_GT(fits->planned_memory_bytes, 1000000 * (16 + 4));

  synthetic->set_train_samples(100000000);
  const absl::StatusOr<AdmittedJob> large = admission.Admit(spec);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(large->spec.gpu().data(), v1::GpuOptions::DATA_PLACEMENT_HOST_MEMORY);
  EXPECT_LT(large->planned_memory_bytes, fits->planned_memory_bytes);
  spec.mutable_gpu()->set_data(v1::GpuOptions::DATA_PLACEMENT_GPU_MEMORY);
  EXPECT_EQ(GetReason(admission.Admit(spec).status()), "TOO_LITTLE_MEMORY");
}

TEST_F(AdmissionTest, NamesTheFieldOfEachMistake) {
  const auto with = [](auto change) {
    v1::JobSpec spec = Good();
    change(spec);
    return spec;
  };
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.set_name("no blanks"); })), ElementsAre("spec.name"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.clear_dataset(); })), ElementsAre("spec.dataset"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_dataset()->clear_name(); })),
              ElementsAre("spec.dataset"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_dataset()->set_name("shaeps"); })),
              ElementsAre("spec.dataset.name"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_model()->mutable_layers(0)->clear_kind(); })),
              Contains(HasSubstr("spec.model.layers[0]")));
  EXPECT_THAT(FieldsOf(with([](auto& s) {
                s.mutable_model()->mutable_layers(0)->mutable_conv2d()->set_kernel(0, -3);
              })),
              ElementsAre("spec.model.layers[0].conv2d.kernel[0]"));
  EXPECT_THAT(FieldsOf(with([](auto& s) {
                s.mutable_model()->mutable_layers(0)->mutable_conv2d()->set_filters(int64_t{1} << 60);
              })),
              ElementsAre("spec.model.layers[0].conv2d.filters"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_model()->mutable_input()->set_shape(1, 5); })),
              Contains("spec.model.input.shape"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_model()->mutable_layers(1)->add_inputs("nowhere"); })),
              ElementsAre("spec.model.layers[1].inputs[0]"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_training()->set_epochs(-1); })),
              ElementsAre("spec.training.epochs"));
  EXPECT_THAT(FieldsOf(with([](auto& s) {
                s.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(-0.1);
              })),
              Contains(HasSubstr("spec.training.optimizer")));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_replicas()->set_count(-2); })),
              ElementsAre("spec.replicas.count"));
  EXPECT_THAT(FieldsOf(with([](auto& s) { s.mutable_training()->set_global_batch_size(1); })),
              ElementsAre("spec.training.global_batch_size"));
}

TEST_F(AdmissionTest, ShapesThatDoNotFitAreSaidWithTheLayer) {
  v1::JobSpec spec = Good();
  spec.mutable_model()->mutable_layers(0)->mutable_conv2d()->set_kernel(0, 9);
  const absl::Status status = Refused(spec);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("conv2d_1"), HasSubstr("[1, 4, 4]")));
  v1::JobSpec outputs = Good();
  outputs.mutable_model()->mutable_layers(2)->mutable_dense()->set_units(7);
  EXPECT_THAT(
      std::string(Refused(outputs).message()),
      AllOf(HasSubstr("spec.model.layers[2]"), HasSubstr("dense_1"), HasSubstr("[7]"), HasSubstr("[3]")));
}

TEST_F(AdmissionTest, FindsAllMistakesAtOnce) {
  v1::JobSpec spec = Good();
  spec.mutable_dataset()->set_name("none");
  spec.mutable_model()->mutable_layers(0)->mutable_conv2d()->set_filters(-1);
  spec.mutable_training()->set_epochs(0);
  spec.mutable_training()->mutable_optimizer()->clear_kind();
  EXPECT_THAT(FieldsOf(spec), UnorderedElementsAre("spec.dataset.name", "spec.model.layers[0].conv2d.filters",
                                                   "spec.training.epochs", "spec.training.optimizer"));
}

TEST_F(AdmissionTest, AnEmptySpecIsRefusedByItsFields) {
  EXPECT_THAT(FieldsOf(v1::JobSpec()), IsSupersetOf({"spec.dataset", "spec.model.input.shape",
                                                     "spec.model.layers", "spec.training.epochs"}));
  v1::JobSpec without_data = Good();
  without_data.clear_dataset();
  without_data.mutable_model()->mutable_layers()->RemoveLast();
  without_data.mutable_training()->set_epochs(-1);
  EXPECT_THAT(FieldsOf(without_data), UnorderedElementsAre("spec.dataset", "spec.training.epochs"));
}

TEST_F(AdmissionTest, BadFilesAreBlamedOnTheNameOrTheField) {
  WriteIdx(data_ + "/shapes/train-labels-idx1-ubyte", {11}, std::string(11, '\x02'));
  EXPECT_THAT(FieldsOf(Good()), ElementsAre("spec.dataset.name"));

  v1::JobSpec spec = Good();
  spec.mutable_dataset()->clear_name();
  v1::IdxSource* idx = spec.mutable_dataset()->mutable_idx();
  idx->set_train_images("shapes/train-images-idx3-ubyte");
  idx->set_train_labels("labels");
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.dataset.idx.train_labels"));  // missing
  WriteIdx(data_ + "/labels", {12}, "three");
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.dataset.idx.train_labels"));  // truncated
  std::ofstream(data_ + "/labels") << "this is no IDX file";
  EXPECT_THAT(FieldsOf(spec), ElementsAre("spec.dataset.idx.train_labels"));
  WriteIdx(data_ + "/labels", {12}, std::string(12, '\x07'));
  idx->set_classes(3);
  const absl::Status out_of_range = Refused(spec);
  EXPECT_THAT(GetFieldViolations(out_of_range),
              Contains(AllOf(Field(&FieldViolation::field, "spec.dataset.idx.train_labels"),
                             Field(&FieldViolation::description, HasSubstr("7")))));
}

// Nothing is known of unreadable data, so only the data set gets blamed.
TEST_F(AdmissionTest, OfDataThatCannotBeReadTheDataAloneIsBlamed) {
  const auto fields = [&](const std::string& data_and_model, const std::string& training) {
    v1::JobSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat(data_and_model,
                     "training { global_batch_size: 2 epochs: 1 optimizer { sgd { learning_rate: 1 } } ",
                     training, "}"),
        &spec));
    return FieldsOf(spec);
  };
  const std::string table =
      "dataset { csv { train: 'none.csv' } } model { input { shape: 3 } layers { dense { units: 2 } } }";
  EXPECT_THAT(fields(table, "loss { mse {} } metrics: METRIC_RMSE early_stopping { patience: 1 }"),
              ElementsAre("spec.dataset.csv.train"));
  EXPECT_THAT(fields(table,
                     "loss { softmax_cross_entropy {} } metrics: METRIC_F1 "
                     "early_stopping { patience: 1 metric: 'f1' }"),
              ElementsAre("spec.dataset.csv.train"));
  EXPECT_THAT(fields("dataset { text { train: 'none.txt' sequence_length: 3 } }"
                     "model { input { shape: 3 } layers { embedding { vocabulary_size: 5 dimension: 2 } }"
                     "        layers { dense { units: 5 per_position: true } } }",
                     "loss { softmax_cross_entropy {} } metrics: METRIC_PERPLEXITY"),
              ElementsAre("spec.dataset.text.train"));
}

TEST_F(AdmissionTest, RefusesWhatCouldNeverRun) {
  v1::JobSpec many = Good();
  many.mutable_replicas()->set_count(3);
  const absl::Status too_few = Refused(many);
  EXPECT_EQ(too_few.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetReason(too_few), "TOO_FEW_DEVICES");
  EXPECT_THAT(std::string(too_few.message()), AllOf(HasSubstr("spec.replicas.count"), HasSubstr("has 2")));

  v1::JobSpec reference = Good();
  reference.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_REFERENCE);
  EXPECT_EQ(Refused(reference).code(), absl::StatusCode::kFailedPrecondition);
  reference.mutable_replicas()->set_count(1);
  EXPECT_TRUE(admission_.Admit(reference).ok());
  v1::JobSpec gpu = Good();
  gpu.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_GPU);
  EXPECT_EQ(Refused(gpu).code(), absl::StatusCode::kFailedPrecondition);

  v1::JobSpec large = Good();
  large.mutable_model()->mutable_layers(1)->Clear();
  large.mutable_model()->mutable_layers(1)->mutable_dense()->set_units(50'000'000);
  const absl::Status too_large = Refused(large);
  EXPECT_EQ(GetReason(too_large), "TOO_LITTLE_MEMORY") << too_large;
}

TEST_F(AdmissionTest, PrecisionMustBeOneOfTheDevices) {
  const auto with = [](v1::Precision precision, v1::DeviceKind kind) {
    v1::JobSpec spec = Good();
    spec.mutable_replicas()->set_count(1);
    spec.mutable_replicas()->set_device_kind(kind);
    spec.mutable_training()->set_precision(precision);
    return spec;
  };
  EXPECT_TRUE(admission_.Admit(with(v1::PRECISION_FLOAT32, v1::DEVICE_KIND_UNSPECIFIED)).ok());
  EXPECT_TRUE(admission_.Admit(with(v1::PRECISION_UNSPECIFIED, v1::DEVICE_KIND_REFERENCE)).ok());
  EXPECT_TRUE(admission_.Admit(with(v1::PRECISION_FLOAT64, v1::DEVICE_KIND_REFERENCE)).ok());
  for (const v1::Precision precision :
       {v1::PRECISION_BFLOAT16, v1::PRECISION_FLOAT16, v1::PRECISION_FLOAT64}) {
    const absl::Status refused = Refused(with(precision, v1::DEVICE_KIND_CPU));
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(GetReason(refused), "PRECISION_NOT_OFFERED");
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("spec.training.precision"), HasSubstr(v1::Precision_Name(precision)),
                      HasSubstr("PRECISION_FLOAT32")));
  }
  EXPECT_EQ(GetReason(Refused(with(v1::PRECISION_FLOAT32, v1::DEVICE_KIND_REFERENCE))),
            "PRECISION_NOT_OFFERED");
  v1::JobSpec scaled = with(v1::PRECISION_FLOAT32, v1::DEVICE_KIND_CPU);
  scaled.mutable_training()->mutable_loss_scaling()->set_growth_factor(1);
  EXPECT_THAT(FieldsOf(scaled),
              UnorderedElementsAre("spec.training.loss_scaling", "spec.training.loss_scaling.growth_factor"));
  EXPECT_THAT(FieldsOf(with(static_cast<v1::Precision>(77), v1::DEVICE_KIND_CPU)),
              ElementsAre("spec.training.precision"));
}

}  // namespace
}  // namespace tandem
