#include "engine/training/evaluation.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backends/device_factory.h"
#include "engine/base/field_violations.h"
#include "engine/base/testing/from_text.h"
#include "engine/data/formats/test_files.h"
#include "engine/training/plan.h"
#include "engine/training/prediction.h"
#include "engine/training/trainer_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kClasses = 4;

// 27 validation samples in batches of 16: some replicas have fewer samples in the last batch.
v1::JobSpec Spec(int replicas) {
  v1::JobSpec spec = FromText<v1::JobSpec>(R"(
    dataset {
      synthetic { shape: [1, 12, 12] classes: 4 train_samples: 61 validation_samples: 27 }
      normalization { mean: 0.3 standard_deviation: 0.4 }
      class_names: ["ant", "bee", "cow", "dog"]
    }
    model {
      input { shape: [1, 12, 12] }
      layers { conv2d { filters: 20 kernel: 3 } }
      layers { batch_norm { activation: ACTIVATION_RELU } }
      layers { max_pool2d { size: 2 } }
      layers { conv2d { filters: 24 kernel: 2 padding: 1 } }
      layers { max_pool2d { size: 2 } }
      layers { dense { units: 16 activation: ACTIVATION_RELU } }
      layers { dense { units: 4 } }
    }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { nesterov { learning_rate: 0.02 momentum: 0.9 } }
      global_batch_size: 8
      epochs: 2
      seed: 7
    })");
  spec.mutable_replicas()->set_count(replicas);
  return spec;
}

// A trained job: its last validation and its model.
struct Trained {
  v1::Evaluation validation;
  TrainedModel model;
};

Trained Train(const v1::JobSpec& spec, const std::string& kind) {
  TrainingRecorder recorder;
  Trainer::Options options = OptionsFor(spec, kind, &recorder);
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(options);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  const absl::Status run = (*trainer)->Run();
  EXPECT_TRUE(run.ok()) << run;
  const std::string path = testing::TempDir() + "/evaluated.safetensors";
  const absl::Status saved = (*trainer)->SaveModel(path);
  EXPECT_TRUE(saved.ok()) << saved;
  absl::StatusOr<TrainedModel> model = ReadTrainedModel(spec, path);
  EXPECT_TRUE(model.ok()) << model.status();
  EXPECT_FALSE(recorder.epochs.empty());
  return {recorder.epochs.empty() ? v1::Evaluation() : recorder.epochs.back().validation(),
          *std::move(model)};
}

std::unique_ptr<Device> Cpu() {
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice("devices/cpu:0");
  EXPECT_TRUE(device.ok()) << device.status();
  return *std::move(device);
}

EvaluationRequest RequestFor(const v1::DatasetSpec& dataset) {
  EvaluationRequest request;
  request.samples.dataset = dataset;
  return request;
}

FieldViolation FaultOf(const absl::Status& status) {
  const std::vector<FieldViolation> found = GetFieldViolations(status);
  EXPECT_EQ(found.size(), 1u) << status;
  return found.empty() ? FieldViolation() : found[0];
}

TEST(EvaluationTest, AgreesWithTheLastValidationBitForBit) {
  for (const int replicas : {1, 2, 3}) {
    SCOPED_TRACE(replicas);
    const v1::JobSpec spec = Spec(replicas);
    const Trained trained = Train(spec, "cpu");
    const std::unique_ptr<Device> device = Cpu();
    std::vector<int64_t> progress;
    EvaluationRequest request = RequestFor(spec.dataset());
    request.on_progress = [&](int64_t done, int64_t samples) {
      EXPECT_EQ(samples, 27);
      progress.push_back(done);
    };
    const auto evaluation = EvaluateModel(trained.model, request, *device);
    ASSERT_TRUE(evaluation.ok()) << evaluation.status();
    EXPECT_EQ(evaluation->loss(), trained.validation.loss());
    EXPECT_EQ(evaluation->metrics().at("accuracy"), trained.validation.metrics().at("accuracy"));
    EXPECT_EQ(evaluation->samples(), 27);
    EXPECT_EQ(progress.back(), 27);
  }
}

TEST(EvaluationTest, DealsByTheLoadsThatTheTrainingMeasured) {
  v1::JobSpec spec = Spec(2);
  spec.mutable_replicas()->add_worker_load(1);
  spec.mutable_replicas()->add_worker_load(0.4);
  const Trained trained = Train(spec, "cpu");
  // The stored job asks for the measurement, and the model has the result.
  v1::JobSpec stored = Spec(2);
  stored.mutable_replicas()->set_auto_worker_load(true);
  const absl::StatusOr<TrainedModel> model =
      ReadTrainedModel(stored, testing::TempDir() + "/evaluated.safetensors");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->spec.replicas().worker_load(), ElementsAre(1, 0.4));
  const auto evaluation = EvaluateModel(*model, RequestFor(spec.dataset()), *Cpu());
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->loss(), trained.validation.loss());
}

TEST(EvaluationTest, MeasuresOtherDataAndTrainingSamples) {
  const v1::JobSpec spec = Spec(1);
  const Trained trained = Train(spec, "cpu");
  const std::unique_ptr<Device> device = Cpu();
  EvaluationRequest request = RequestFor(spec.dataset());
  request.samples.split = Split::kTraining;
  request.batch_size = 7;
  auto evaluation = EvaluateModel(trained.model, request, *device);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->samples(), 61);

  request = RequestFor(spec.dataset());
  request.samples.dataset.mutable_synthetic()->set_validation_samples(0);
  evaluation = EvaluateModel(trained.model, request, *device);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->samples(), 61);
}

TEST(EvaluationTest, MeasuresOtherMetricsThanTheJob) {
  v1::JobSpec spec = Spec(1);
  spec.mutable_training()->add_metrics(v1::METRIC_TOP_K);
  spec.mutable_training()->set_top_k(2);
  Trained trained = Train(spec, "cpu");
  const std::unique_ptr<Device> device = Cpu();
  EvaluationRequest request = RequestFor(spec.dataset());
  request.metrics = {v1::METRIC_ACCURACY};
  auto evaluation = EvaluateModel(trained.model, request, *device);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->metrics().count("accuracy"), 1);
  request.metrics = {v1::METRIC_TOP_K};
  evaluation = EvaluateModel(trained.model, request, *device);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->metrics().at("top_2_accuracy"), trained.validation.metrics().at("top_2_accuracy"));

  // Without the job's k, the default k is the number of classes, because it is less than 5.
  trained.model.spec.mutable_training()->clear_metrics();
  trained.model.spec.mutable_training()->clear_top_k();
  evaluation = EvaluateModel(trained.model, request, *device);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->metrics().at("top_4_accuracy"), 1);
  // A given k is not changed.
  trained.model.spec.mutable_training()->set_top_k(5);
  const absl::Status refused = EvaluateModel(trained.model, request, *device).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is 5, more than the 4 classes; set it to"));
}

TEST(EvaluationTest, NamesWhatDoesNotFit) {
  const v1::JobSpec spec = Spec(1);
  const Trained trained = Train(spec, "cpu");
  const std::unique_ptr<Device> device = Cpu();
  EvaluationRequest request = RequestFor(spec.dataset());
  request.samples.dataset.mutable_synthetic()->set_shape(2, 13);
  FieldViolation fault = FaultOf(EvaluateModel(trained.model, request, *device).status());
  EXPECT_EQ(fault.field, "dataset");
  EXPECT_THAT(fault.description, HasSubstr("has samples [1, 12, 13], but the model takes [1, 12, 12]"));

  request = RequestFor(spec.dataset());
  request.samples.dataset.clear_class_names();
  request.samples.dataset.mutable_synthetic()->set_classes(5);
  fault = FaultOf(EvaluateModel(trained.model, request, *device).status());
  EXPECT_EQ(fault.field, "dataset");
  EXPECT_THAT(fault.description, HasSubstr("5"));

  request = RequestFor(spec.dataset());
  request.samples.dataset.mutable_synthetic()->set_validation_samples(0);
  request.samples.split = Split::kValidation;
  EXPECT_EQ(FaultOf(EvaluateModel(trained.model, request, *device).status()).field, "split");

  request = RequestFor(spec.dataset());
  request.memory_bytes = 1;
  EXPECT_EQ(EvaluateModel(trained.model, request, *device).status().code(),
            absl::StatusCode::kResourceExhausted);
}

std::string WriteTable(const std::string& name, const std::string& text) {
  return WriteFile(testing::TempDir() + "/" + name, text);
}

// A model with a single dense layer, with these weights and no bias.
TrainedModel DenseModel(const std::string& loss, const std::vector<std::vector<float>>& weights) {
  TrainedModel model;
  model.spec = FromText<v1::JobSpec>(
      absl::StrCat("dataset { csv {} } model { input { shape: ", weights[0].size(),
                   " } layers { dense { units: ", weights.size(), " } } } training { loss { ", loss,
                   " {} } optimizer { sgd { learning_rate: 0.1 } } global_batch_size: 4 epochs: 1 }"));
  FillDefaults(&model.spec);
  const auto units = static_cast<int64_t>(weights.size()), inputs = static_cast<int64_t>(weights[0].size());
  Tensor weight(DType::kFloat32, Shape({units, inputs}));
  for (int64_t i = 0; i < units * inputs; ++i) weight.data<float>()[i] = weights[i / inputs][i % inputs];
  const std::string layer = model.spec.model().layers(0).name();
  model.weights[layer + ".weight"] = std::move(weight);
  model.weights[layer + ".bias"] = Tensor(DType::kFloat32, Shape({units}));
  model.trained_on.sample_type = SampleType::kFloats;
  model.trained_on.normalization =
      *ResolveNormalization({}, Shape({inputs}), DTypeOfSamples(SampleType::kFloats));
  return model;
}

// y = 3a - 5b: the loss of exact weights is 0, of swapped columns (8b - 8a)^2.
TEST(EvaluationTest, ColumnsAreMatchedByName) {
  TrainedModel model = DenseModel("mse", {{3, -5}});
  model.trained_on.feature_names = {"a", "b"};
  model.trained_on.target_names = {"y"};
  const std::unique_ptr<Device> device = Cpu();
  v1::DatasetSpec dataset;
  for (const char* table :
       {"a,b,y\n1,2,-7\n4,1,7\n", "b,a,y\n2,1,-7\n1,4,7\n", "y,b,x,a\n-7,2,?,1\n7,1,,4\n"}) {
    SCOPED_TRACE(table);
    dataset.mutable_csv()->set_train(WriteTable("columns.csv", table));
    const auto evaluation = EvaluateModel(model, RequestFor(dataset), *device);
    ASSERT_TRUE(evaluation.ok()) << evaluation.status();
    EXPECT_EQ(evaluation->loss(), 0);
  }
  dataset.mutable_csv()->set_train(WriteTable("columns.csv", "a,c,y\n1,2,-7\n"));
  const FieldViolation fault = FaultOf(EvaluateModel(model, RequestFor(dataset), *device).status());
  EXPECT_EQ(fault.field, "dataset.csv.feature_columns");
  EXPECT_THAT(fault.description, HasSubstr("has no column 'b', which is a feature of the model"));
}

// The model predicts 0 for targets that it divides by 10. The differences are 5 and 30.
TEST(EvaluationTest, DeltaAndBetaAreInTheScaleOfTheTable) {
  const std::unique_ptr<Device> device = Cpu();
  for (const bool huber : {true, false}) {
    TrainedModel model = DenseModel("huber", {{0}});
    v1::Loss& loss = *model.spec.mutable_training()->mutable_loss();
    if (huber) loss.mutable_huber()->set_delta(10);
    if (!huber) loss.mutable_smooth_l1()->set_beta(10);
    model.trained_on.feature_names = {"a"};
    model.trained_on.target_names = {"y"};
    model.trained_on.preparation = FromText<v1::TablePreparation>(
        "columns { name: 'a' kind: COLUMN_KIND_NUMBER numbers { deviation: 1 } } target_deviation: 10");
    v1::DatasetSpec dataset;
    dataset.mutable_csv()->set_train(WriteTable("scaled.csv", "a,y\n1,5\n2,-30\n"));
    const auto evaluation = EvaluateModel(model, RequestFor(dataset), *device);
    ASSERT_TRUE(evaluation.ok()) << evaluation.status();
    // 5^2 / 2 and 10 (30 - 5), divided by beta.
    EXPECT_NEAR(evaluation->loss(), (12.5 + 250) / 2 / (huber ? 1 : 10), 1e-4);
  }
}

// The class is the largest of three numbers.
TEST(EvaluationTest, ClassesAreMatchedByName) {
  TrainedModel model = DenseModel("softmax_cross_entropy", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}});
  model.trained_on.feature_names = {"u", "v", "w"};
  model.trained_on.target_names = {"kind"};
  model.trained_on.class_names = {"bird", "cat", "dog"};
  const std::unique_ptr<Device> device = Cpu();
  v1::DatasetSpec dataset;
  for (const char* table : {"u,v,w,kind\n9,0,0,bird\n0,9,0,cat\n0,0,9,dog\n",
                            "u,v,w,kind\n0,9,0,cat\n0,0,9,dog\n", "u,v,w,kind\n0,0,9,dog\n"}) {
    SCOPED_TRACE(table);
    dataset.mutable_csv()->set_train(WriteTable("classes.csv", table));
    const auto evaluation = EvaluateModel(model, RequestFor(dataset), *device);
    ASSERT_TRUE(evaluation.ok()) << evaluation.status();
    EXPECT_EQ(evaluation->metrics().at("accuracy"), 1);
  }
  dataset.mutable_csv()->set_train(WriteTable("classes.csv", "u,v,w,kind\n0,9,0,cat\n0,0,9,elk\n"));
  const FieldViolation fault = FaultOf(EvaluateModel(model, RequestFor(dataset), *device).status());
  EXPECT_EQ(fault.field, "dataset.csv.train");
  EXPECT_THAT(fault.description,
              HasSubstr("row 3, column 'kind' is 'elk', a class that the model does not know"));
  // Numbers are labels, with a notice. Fewer classes than the model's are accepted.
  std::vector<std::string> notices;
  EvaluationRequest request = RequestFor(dataset);
  request.samples.on_notice = [&](absl::string_view notice) { notices.emplace_back(notice); };
  request.samples.dataset.mutable_csv()->set_train(
      WriteTable("classes.csv", "u,v,w,kind\n0,9,0,1\n9,0,0,0\n"));
  const auto evaluation = EvaluateModel(model, request, *device);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->metrics().at("accuracy"), 1);
  EXPECT_EQ(notices.size(), 1u);
}

TEST(EvaluationTest, SaysThatTrainingSamplesAreMeasured) {
  const TrainedModel model = DenseModel("mse", {{3, -5}});
  std::vector<std::string> notices;
  v1::DatasetSpec dataset;
  dataset.mutable_csv()->set_train(WriteTable("own.csv", "a,b,y\n1,2,-7\n"));
  EvaluationRequest request = RequestFor(dataset);
  request.samples.on_notice = [&](absl::string_view notice) { notices.emplace_back(notice); };
  const std::unique_ptr<Device> device = Cpu();
  EXPECT_TRUE(EvaluateModel(model, request, *device).ok());
  const auto is_told = ::testing::Contains(HasSubstr("its training samples are used"));
  EXPECT_THAT(notices, ::testing::Not(is_told));
  request.samples.is_own_dataset = true;
  EXPECT_TRUE(EvaluateModel(model, request, *device).ok());
  EXPECT_THAT(notices, is_told);
}

// A scale for bytes does not apply to floats.
TEST(EvaluationTest, SamplesAreOfTheModelsType) {
  TrainedModel model = DenseModel("mse", {{3, -5}});
  model.trained_on.sample_type = SampleType::kBytes;
  v1::DatasetSpec dataset;
  dataset.mutable_csv()->set_train(WriteTable("floats.csv", "a,b,y\n1,2,-7\n"));
  const std::unique_ptr<Device> device = Cpu();
  const FieldViolation fault = FaultOf(EvaluateModel(model, RequestFor(dataset), *device).status());
  EXPECT_EQ(fault.field, "dataset");
  EXPECT_THAT(fault.description, HasSubstr("has samples of floats, but the model was trained on bytes"));
}

TEST(EvaluationTest, ImagesComeToTheirSizeAsTheModels) {
  TrainedModel model = DenseModel("mse", {{3, -5}});
  model.trained_on.resize = v1::IMAGE_RESIZE_CROP;
  v1::DatasetSpec dataset;
  dataset.mutable_image_folder()->set_train("none");
  dataset.mutable_image_folder()->set_height(4);
  dataset.mutable_image_folder()->set_width(4);
  const std::unique_ptr<Device> device = Cpu();
  const auto fault = [&] { return FaultOf(EvaluateModel(model, RequestFor(dataset), *device).status()); };
  EXPECT_EQ(fault().field, "dataset.image_folder.resize");
  EXPECT_THAT(fault().description,
              HasSubstr("is IMAGE_RESIZE_STRETCH, but the model was trained with IMAGE_RESIZE_CROP"));
  // The next checks find their other faults.
  dataset.mutable_image_folder()->set_resize(v1::IMAGE_RESIZE_CROP);
  EXPECT_EQ(fault().field, "dataset.image_folder.train");
  model.trained_on.resize = v1::IMAGE_RESIZE_UNSPECIFIED;
  dataset.mutable_image_folder()->set_resize(v1::IMAGE_RESIZE_STRETCH);
  EXPECT_EQ(fault().field, "dataset.image_folder.train");
}

TEST(EvaluationTest, NamesAPictureInAShardThatCannotBeRead) {
  const Trained trained = Train(Spec(1), "cpu");
  v1::DatasetSpec dataset;
  v1::WebDatasetSource& source = *dataset.mutable_webdataset();
  source.set_train(WriteFile(FreshFolder() + "/0.tar", Tar({{"x.bmp", "no picture"}, {"x.cls", "1"}})));
  source.set_height(12);
  source.set_width(12);
  source.set_channels(1);
  source.set_classes(kClasses);
  EvaluationRequest request = RequestFor(dataset);
  request.samples.split = Split::kTraining;
  const std::unique_ptr<Device> device = Cpu();
  const FieldViolation fault = FaultOf(EvaluateModel(trained.model, request, *device).status());
  EXPECT_EQ(fault.field, "dataset");
  EXPECT_THAT(fault.description, HasSubstr("cannot read samples: "));
  EXPECT_THAT(fault.description, HasSubstr("/0.tar/x.bmp is no picture"));
}

TEST(EvaluationTest, RefusesTargetsOutsideWhatTheLossTakes) {
  const TrainedModel model = DenseModel("binary_cross_entropy_with_logits", {{3, -5}});
  const std::unique_ptr<Device> device = Cpu();
  v1::DatasetSpec dataset;
  dataset.mutable_csv()->set_targets(v1::TARGET_KIND_VALUES);
  dataset.mutable_csv()->set_train(WriteTable("shares.csv", "a,b,y\n1,2,0\n4,1,1\n2,2,0.25\n"));
  EXPECT_EQ(EvaluateModel(model, RequestFor(dataset), *device).status(), absl::OkStatus());
  dataset.mutable_csv()->set_train(WriteTable("marks.csv", "a,b,y\n1,2,-1\n4,1,1\n"));
  const FieldViolation fault = FaultOf(EvaluateModel(model, RequestFor(dataset), *device).status());
  EXPECT_EQ(fault.field, "dataset");
  EXPECT_THAT(fault.description,
              HasSubstr("has targets that are from -1 to 1, but the loss takes numbers in [0, 1]"));
}

TEST(PredictionTest, AgreesWithTheAccuracy) {
  const v1::JobSpec spec = Spec(1);
  const Trained trained = Train(spec, "cpu");
  const std::unique_ptr<Device> device = Cpu();
  const auto data = OpenDataset(spec.dataset());
  ASSERT_TRUE(data.ok()) << data.status();
  std::vector<uint32_t> indices(27);
  for (uint32_t i = 0; i < 27; ++i) indices[i] = i;
  Tensor samples(DType::kUInt8, Shape({27, 1, 12, 12}));
  std::vector<int32_t> labels(27);
  ASSERT_TRUE(data->validation->Gather(indices, samples.raw_data(), labels.data()).ok());

  EXPECT_THAT(trained.model.trained_on.class_names, ElementsAre("ant", "bee", "cow", "dog"));
  Predictor predictor(trained.model, SampleType::kBytes, *device);
  const auto outputs = predictor.Run(samples);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(outputs->shape(), Shape({27, kClasses}));
  PredictionFormat format;
  format.class_names = trained.model.trained_on.class_names;
  format.top_k = 2;
  int right = 0;
  for (int i = 0; i < 27; ++i) {
    const v1::Prediction prediction =
        MakePrediction(Shape({kClasses}), outputs->data<float>().data() + i * kClasses, format);
    ASSERT_EQ(prediction.classes_size(), 2);
    EXPECT_EQ(prediction.classes(0).name(), format.class_names[prediction.classes(0).index()]);
    EXPECT_GE(prediction.classes(0).probability(), prediction.classes(1).probability());
    if (prediction.classes(0).index() == labels[i]) ++right;
  }
  EXPECT_EQ(right / 27.0, trained.validation.metrics().at("accuracy"));
}

std::vector<v1::Prediction> PredictionsOf(const TrainedModel& model, const SampleChoice& choice,
                                          const PredictionFormat& format, Device& device) {
  const absl::StatusOr<ModelSamples> samples = OpenModelSamples(model, choice);
  EXPECT_TRUE(samples.ok()) << samples.status();
  std::vector<v1::Prediction> predictions;
  if (!samples.ok()) return predictions;
  Predictor predictor(model, model.trained_on.sample_type, device);
  const absl::Status status = PredictSamples(*samples, format, predictor, [&](v1::Prediction prediction) {
    predictions.push_back(std::move(prediction));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return predictions;
}

TEST(PredictionTest, SamplesOfADataSetAgreeWithTheEvaluation) {
  v1::JobSpec spec = Spec(1);
  spec.mutable_dataset()->mutable_synthetic()->set_validation_samples(2 * Predictor::kBatch + 3);
  const Trained trained = Train(spec, "cpu");
  PredictionFormat format;
  format.class_names = trained.model.trained_on.class_names;
  format.outputs = true;
  SampleChoice choice;
  choice.dataset = spec.dataset();
  const std::unique_ptr<Device> device = Cpu();
  const std::vector<v1::Prediction> predictions = PredictionsOf(trained.model, choice, format, *device);
  ASSERT_EQ(predictions.size(), 2 * Predictor::kBatch + 3);
  int64_t right = 0;
  double loss = 0;
  for (size_t i = 0; i < predictions.size(); ++i) {
    const v1::Prediction& one = predictions[i];
    EXPECT_EQ(one.sample(), i);
    ASSERT_EQ(one.classes_size(), kClasses);
    EXPECT_EQ(one.outputs_size(), kClasses);
    EXPECT_EQ(one.targets_size(), 0);
    EXPECT_EQ(one.true_class().name(), format.class_names[one.true_class().index()]);
    for (const v1::ClassScore& score : one.classes()) {
      if (score.index() != one.true_class().index()) continue;
      EXPECT_EQ(score.probability(), one.true_class().probability());
    }
    if (one.classes(0).index() == one.true_class().index()) ++right;
    loss -= std::log(one.true_class().probability());
  }
  const auto count = static_cast<double>(predictions.size());
  EXPECT_EQ(right / count, trained.validation.metrics().at("accuracy"));
  EXPECT_NEAR(loss / count, trained.validation.loss(), 1e-5);

  // Another part, and another number of samples.
  choice.split = Split::kTraining;
  EXPECT_EQ(PredictionsOf(trained.model, choice, format, *device).size(), 61u);
}

// The model predicts 3a - 5b in the scale (y - 100) / 10, for columns in another order.
TEST(PredictionTest, TargetsHaveTheScaleOfTheTable) {
  TrainedModel model = DenseModel("mse", {{3, -5}});
  model.trained_on.feature_names = {"a", "b"};
  model.trained_on.target_names = {"y"};
  model.trained_on.preparation = FromText<v1::TablePreparation>(
      "columns { name: 'a' kind: COLUMN_KIND_NUMBER numbers { deviation: 1 } }"
      "columns { name: 'b' kind: COLUMN_KIND_NUMBER numbers { deviation: 1 } }"
      "target_mean: 100 target_deviation: 10");
  SampleChoice choice;
  choice.dataset.mutable_csv()->set_train(WriteTable("scaled.csv", "y,b,a\n30,2,1\n175,1,4\n"));
  PredictionFormat format;
  format.classifies = false;
  format.target_mean = 100;
  format.target_deviation = 10;
  const std::vector<v1::Prediction> predictions = PredictionsOf(model, choice, format, *Cpu());
  ASSERT_EQ(predictions.size(), 2u);
  EXPECT_THAT(predictions[0].targets(), ElementsAre(30));
  EXPECT_THAT(predictions[1].targets(), ElementsAre(175));
  EXPECT_THAT(predictions[0].outputs(), ElementsAre(30));
  EXPECT_THAT(predictions[1].outputs(), ElementsAre(170));
  EXPECT_FALSE(predictions[0].has_true_class());
}

// With this loss, the only output is the logit of the second class.
TEST(PredictionTest, ClassesOfOneLogitAreTargets) {
  TrainedModel model = DenseModel("binary_cross_entropy_with_logits", {{3, -5}});
  model.trained_on.feature_names = {"a", "b"};
  model.trained_on.class_names = {"bad", "good"};
  SampleChoice choice;
  choice.dataset.mutable_csv()->set_train(WriteTable("binary.csv", "a,b,y\n2,1,good\n1,4,bad\n5,2,good\n"));
  PredictionFormat format;
  format.classifies = false;
  const std::vector<v1::Prediction> predictions = PredictionsOf(model, choice, format, *Cpu());
  ASSERT_EQ(predictions.size(), 3u);
  const float targets[] = {1, 0, 1}, outputs[] = {1, -17, 5};
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(predictions[i].targets(), ElementsAre(targets[i])) << i;
    EXPECT_THAT(predictions[i].outputs(), ElementsAre(outputs[i])) << i;
  }
}

TEST(PredictionTest, AnIgnoredLabelIsNoClass) {
  TrainedModel model = DenseModel("softmax_cross_entropy", {{1, 0}, {0, 1}});
  const float logits[] = {1, 3};
  const PredictionFormat format;
  EXPECT_FALSE(MakePrediction(Shape({2}), logits, format, -100).has_true_class());
  EXPECT_FALSE(MakePrediction(Shape({2}), logits, format, 2).has_true_class());
  EXPECT_FALSE(MakePrediction(Shape({2}), logits, format).has_true_class());
  EXPECT_TRUE(MakePrediction(Shape({2}), logits, format, 0).has_true_class());
}

TEST(PredictionTest, RunsInBatches) {
  const v1::JobSpec spec = Spec(1);
  const Trained trained = Train(spec, "cpu");
  const std::unique_ptr<Device> device = Cpu();
  Predictor predictor(trained.model, SampleType::kBytes, *device);
  const int64_t count = 2 * Predictor::kBatch + 3;
  Tensor samples(DType::kUInt8, Shape({count, 1, 12, 12}));
  for (int64_t i = 0; i < samples.elements(); ++i)
    samples.data<uint8_t>()[i] = static_cast<uint8_t>((i / 144) * 37 + i);
  const auto outputs = predictor.Run(samples);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->shape(), Shape({count, kClasses}));
  for (const int64_t i : {int64_t{0}, Predictor::kBatch, count - 1}) {
    Tensor one(DType::kUInt8, Shape({1, 1, 12, 12}));
    for (int64_t j = 0; j < 144; ++j) one.data<uint8_t>()[j] = samples.data<uint8_t>()[i * 144 + j];
    const auto output = predictor.Run(one);
    ASSERT_TRUE(output.ok()) << output.status();
    for (int c = 0; c < kClasses; ++c) {
      const float difference = output->data<float>()[c] - outputs->data<float>()[i * kClasses + c];
      EXPECT_FALSE(!(std::abs(difference) <= 1e-4)) << i << " " << c;
    }
  }
}

TEST(PredictionTest, SaysWhatAnOutputMeans) {
  const float logits[] = {1, 3, 2, 3};
  PredictionFormat format;
  format.top_k = 3;
  v1::Prediction prediction = MakePrediction(Shape({4}), logits, format);
  ASSERT_EQ(prediction.classes_size(), 3);
  EXPECT_EQ(prediction.classes(0).index(), 1);
  EXPECT_EQ(prediction.classes(1).index(), 3);
  EXPECT_EQ(prediction.classes(2).index(), 2);
  EXPECT_EQ(prediction.classes(0).name(), "");
  EXPECT_NEAR(prediction.classes(2).probability(),
              std::exp(2.) / (std::exp(1.) + 2 * std::exp(3.) + std::exp(2.)), 1e-12);
  EXPECT_EQ(prediction.outputs_size(), 0);
  // The last of two positions.
  prediction = MakePrediction(Shape({2, 2}), logits, format);
  ASSERT_EQ(prediction.classes_size(), 2);
  EXPECT_EQ(prediction.classes(0).index(), 1);

  format.classifies = false;
  prediction = MakePrediction(Shape({2, 2}), logits, format);
  EXPECT_EQ(prediction.classes_size(), 0);
  EXPECT_THAT(prediction.outputs(), ElementsAre(1, 3, 2, 3));
  EXPECT_THAT(prediction.output_shape(), ElementsAre(2, 2));
}

}  // namespace
}  // namespace tandem
