#include "server/worker/model_run.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/memory_error.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/onnx/onnx_model.h"
#include "engine/training/evaluation.h"
#include "engine/training/model_samples.h"
#include "engine/training/prediction.h"
#include "engine/training/prediction_input.h"
#include "engine/training/trained_model.h"
#include "server/admission/read_dataset.h"

namespace tandem {
namespace {

using internal::v1::ModelTask;
using internal::v1::ModelTaskEnd;
using internal::v1::ModelTaskOutput;

// Nobody reads more violations, or more notices about inputs.
constexpr int kMaxViolations = 20;
constexpr size_t kMaxNotices = 20;
// The approximate size at which a response is sent.
constexpr size_t kResponseBytes = 1 << 20;

// The place of a sample in a request: its input and its number.
struct SamplePlace {
  int input = 0;
  int64_t sample = 0;
};

// The samples of all inputs, one after another.
struct Samples {
  std::vector<Tensor> inputs;  // [samples, ...] each.
  std::vector<SamplePlace> places;
  std::vector<std::string> notices;
};

// Returns the name of input `i` in answers.
std::string LabelOf(const v1::PredictRequest& request, int i) {
  const std::string& label = request.inputs(i).label();
  return label.empty() ? absl::StrCat(i) : label;
}

absl::StatusOr<TrainedModel> ReadModel(const ModelTask& task) {
  TANDEM_RETURN_IF_ERROR(CheckModelSha256(task.model_path(), task.model_sha256()));
  absl::StatusOr<TrainedModel> model = ReadTrainedModel(task.spec(), task.model_path());
  if (!absl::IsNotFound(model.status())) return model;
  return absl::NotFoundError(
      absl::StrCat("cannot read the model, its file was removed meanwhile: ", model.status().message()));
}

absl::StatusOr<Samples> ReadSamples(const TrainedModel& model, const ModelTask& task) {
  Samples samples;
  FieldViolations violations;
  int64_t bytes = 0;
  for (int i = 0; i < task.predict().inputs_size(); ++i) {
    std::vector<std::string> notices;
    absl::StatusOr<Tensor> read = ReadPredictInput(task.predict().inputs(i), model, &notices);
    if (!read.ok() && !absl::IsInvalidArgument(read.status())) return read.status();
    if (!read.ok()) {
      violations.Add(absl::StrCat("inputs[", i, "]"), read.status().message());
      if (violations.violations().size() == kMaxViolations) break;
      samples.inputs.emplace_back();
      continue;
    }
    bytes += read->bytes();
    if (task.memory_bytes() > 0 && bytes > task.memory_bytes()) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot take the samples: they need more than ",
                                                       task.memory_bytes() >> 20,
                                                       " MiB of memory; send fewer at once"));
    }
    for (int64_t sample = 0; sample < read->shape()[0]; ++sample) samples.places.push_back({i, sample});
    samples.inputs.push_back(*std::move(read));
    for (const std::string& notice : notices) {
      if (samples.notices.size() == kMaxNotices) break;
      samples.notices.push_back(absl::StrCat(LabelOf(task.predict(), i), ": ", notice));
    }
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return samples;
}

// Returns the samples at [begin, end) of the places as a batch.
Tensor BatchOf(const Samples& samples, size_t begin, size_t end) {
  const Tensor& first = samples.inputs[samples.places[begin].input];
  std::vector<int64_t> extents(first.shape().extents().begin(), first.shape().extents().end());
  extents[0] = static_cast<int64_t>(end - begin);
  Tensor batch(first.dtype(), Shape(std::move(extents)));
  const int64_t bytes = batch.bytes() / batch.shape()[0];
  auto* to = static_cast<std::byte*>(batch.raw_data());
  for (size_t i = begin; i < end; ++i, to += bytes) {
    const SamplePlace& place = samples.places[i];
    const auto* from = static_cast<const std::byte*>(samples.inputs[place.input].raw_data());
    std::memcpy(to, from + place.sample * bytes, bytes);
  }
  return batch;
}

PredictionFormat FormatOf(const v1::PredictRequest& request, const TrainedModel& model) {
  PredictionFormat format;
  format.classifies = Classifies(model.spec.training().loss());
  if (request.has_top_k()) format.top_k = request.top_k();
  format.outputs = request.outputs();
  format.class_names = model.trained_on.class_names;
  if (const auto& preparation = model.trained_on.preparation; preparation.has_value()) {
    format.target_mean = preparation->target_mean();
    format.target_deviation = preparation->target_deviation();
  }
  return format;
}

absl::Status PredictInputs(const ModelTask& task, const TrainedModel& model, Predictor& predictor,
                           const WriteOutput& write) {
  const v1::PredictRequest& request = task.predict();
  const PredictionFormat format = FormatOf(request, model);
  TANDEM_ASSIGN_OR_RETURN(const Samples samples, ReadSamples(model, task));
  ModelTaskOutput output;
  output.mutable_predict()->mutable_notices()->Assign(samples.notices.begin(), samples.notices.end());
  for (size_t begin = 0; begin < samples.places.size(); begin += Predictor::kBatch) {
    const size_t end = std::min(samples.places.size(), begin + Predictor::kBatch);
    TANDEM_ASSIGN_OR_RETURN(const Tensor outputs, predictor.Run(BatchOf(samples, begin, end)));
    const absl::Span<const int64_t> extents = outputs.shape().extents();
    const Shape shape(std::vector<int64_t>(extents.begin() + 1, extents.end()));
    for (size_t i = begin; i < end; ++i) {
      const SamplePlace& place = samples.places[i];
      v1::Prediction& prediction = *output.mutable_predict()->add_predictions();
      prediction =
          MakePrediction(shape, outputs.data<float>().data() + (i - begin) * shape.elements(), format);
      prediction.set_input(LabelOf(request, place.input));
      prediction.set_sample(place.sample);
      if (output.ByteSizeLong() < kResponseBytes && i + 1 < end) continue;
      TANDEM_RETURN_IF_ERROR(write(output));
      output.Clear();
    }
  }
  return absl::OkStatus();
}

Split SplitOf(v1::DatasetSplit split) {
  switch (split) {
    case v1::DATASET_SPLIT_TRAINING:
      return Split::kTraining;
    case v1::DATASET_SPLIT_VALIDATION:
      return Split::kValidation;
    default:
      return Split::kDefault;
  }
}

SampleChoice ChoiceOf(const ModelTask& task, bool is_own_dataset, v1::DatasetSplit split) {
  SampleChoice choice;
  choice.dataset = task.dataset();
  choice.is_own_dataset = is_own_dataset;
  choice.split = SplitOf(split);
  return choice;
}

absl::Status PredictDataset(const ModelTask& task, const TrainedModel& model, Predictor& predictor,
                            const WriteOutput& write) {
  const v1::PredictRequest& request = task.predict();
  ModelTaskOutput output;
  v1::PredictResponse& response = *output.mutable_predict();
  SampleChoice choice = ChoiceOf(task, !request.has_dataset(), request.split());
  choice.on_notice = [&](absl::string_view notice) { response.add_notices(ToUtf8(notice)); };
  TANDEM_ASSIGN_OR_RETURN(const ModelSamples samples, OpenModelSamples(model, choice));
  if (const int64_t bytes = samples.data.info.memory_bytes;
      task.memory_bytes() > 0 && bytes > task.memory_bytes()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot open the data set: its samples need ", bytes >> 20, " MiB of memory, more than the ",
        task.memory_bytes() >> 20, " MiB that are allowed; give a smaller data set"));
  }
  size_t bytes = 0;
  TANDEM_RETURN_IF_ERROR(
      PredictSamples(samples, FormatOf(request, model), predictor, [&](v1::Prediction prediction) {
        bytes += prediction.ByteSizeLong();
        *response.add_predictions() = std::move(prediction);
        if (bytes < kResponseBytes) return absl::OkStatus();
        const absl::Status written = write(output);
        response.Clear();
        bytes = 0;
        return written;
      }));
  return response.predictions().empty() ? absl::OkStatus() : write(output);
}

absl::Status Evaluate(const ModelTask& task, Device& device, const WriteOutput& write) {
  const v1::EvaluateRequest& asked = task.evaluate();
  TANDEM_ASSIGN_OR_RETURN(const TrainedModel model, ReadModel(task));
  absl::Status written;
  ModelTaskOutput output;
  EvaluationRequest request;
  request.samples = ChoiceOf(task, !asked.has_dataset(), asked.split());
  for (const int metric : asked.metrics()) request.metrics.push_back(static_cast<v1::Metric>(metric));
  request.batch_size = asked.batch_size();
  request.memory_bytes = task.memory_bytes();
  int64_t told = 0;
  request.on_progress = [&](int64_t done, int64_t all) {
    output.mutable_evaluate()->set_done(done);
    output.mutable_evaluate()->set_samples(all);
    // Report at most a hundred times.
    if (!written.ok() || done - told < std::max<int64_t>(all / 100, 1) || done == all) return;
    told = done;
    written = write(output);
    output.mutable_evaluate()->clear_notices();
  };
  request.samples.on_notice = [&](absl::string_view notice) {
    output.mutable_evaluate()->add_notices(ToUtf8(notice));
  };
  TANDEM_ASSIGN_OR_RETURN(*output.mutable_evaluate()->mutable_evaluation(),
                          EvaluateModel(model, request, device));
  TANDEM_RETURN_IF_ERROR(written);
  if (v1::Evaluation& evaluation = *output.mutable_evaluate()->mutable_evaluation();
      evaluation.has_classification()) {
    for (const std::string& name : model.trained_on.class_names) {
      evaluation.mutable_classification()->add_class_names(name);
    }
  }
  return write(output);
}

absl::Status ExportModel(const ModelTask& task, const WriteOutput& write) {
  TANDEM_ASSIGN_OR_RETURN(const TrainedModel model, ReadModel(task));
  TANDEM_ASSIGN_OR_RETURN(const std::string file, ToOnnx(model));
  ModelTaskOutput output;
  for (size_t begin = 0; begin < file.size(); begin += kResponseBytes) {
    output.mutable_export_model()->set_data(file.substr(begin, kResponseBytes));
    TANDEM_RETURN_IF_ERROR(write(output));
  }
  return absl::OkStatus();
}

absl::Status ReadData(const ModelTask& task, const WriteOutput& write) {
  ModelTaskOutput output;
  absl::StatusOr<internal::v1::DataFacts> facts = LocalDatasetReader().Read(task.data());
  if (absl::IsResourceExhausted(facts.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot read the data set: it needs more than ", task.memory_bytes() >> 20,
                     " MiB of memory; give the daemon more memory, or use smaller files"));
  }
  TANDEM_RETURN_IF_ERROR(facts.status());
  *output.mutable_data() = *std::move(facts);
  return write(output);
}

}  // namespace

// A model that predicts.
struct ModelRun::LoadedModel {
  LoadedModel(const ModelTask& task, TrainedModel read, std::unique_ptr<Device> opened)
      : path(task.model_path()),
        sha256(task.model_sha256()),
        model(std::move(read)),
        device(std::move(opened)),
        predictor(model, model.trained_on.sample_type, *device) {}

  const std::string path;
  const std::string sha256;
  const TrainedModel model;
  const std::unique_ptr<Device> device;
  Predictor predictor;
};

ModelRun::ModelRun(DeviceFactory device_factory) : device_factory_(std::move(device_factory)) {}

ModelRun::~ModelRun() = default;

absl::StatusOr<ModelRun::LoadedModel*> ModelRun::Load(const ModelTask& task) {
  // Without a checksum, the file may be another one by now.
  const bool is_loaded = loaded_ != nullptr && !task.model_sha256().empty() &&
                         loaded_->sha256 == task.model_sha256() && loaded_->path == task.model_path();
  if (!is_loaded) {
    loaded_ = nullptr;
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, device_factory_(task.device()));
    TANDEM_ASSIGN_OR_RETURN(TrainedModel model, ReadModel(task));
    loaded_ = std::make_unique<LoadedModel>(task, std::move(model), std::move(device));
  }
  return loaded_.get();
}

absl::Status ModelRun::Run(const ModelTask& task, const WriteOutput& write) {
  switch (task.kind_case()) {
    case ModelTask::kData:
      return ReadData(task, write);
    case ModelTask::kPredict: {
      TANDEM_ASSIGN_OR_RETURN(LoadedModel* const loaded, Load(task));
      const auto predict = task.has_dataset() ? &PredictDataset : &PredictInputs;
      return predict(task, loaded->model, loaded->predictor, write);
    }
    case ModelTask::kEvaluate: {
      TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, device_factory_(task.device()));
      return Evaluate(task, *device, write);
    }
    case ModelTask::kExportModel:
      return ExportModel(task, write);
    case ModelTask::KIND_NOT_SET:
      break;
  }
  return absl::InternalError("cannot do the task: this version of the worker does not know it");
}

absl::Status ModelRun::Perform(const ModelTask& task, const WriteOutput& write) {
  const absl::Status status = CatchNoMemory([&] { return Run(task, write); });
  // Memory may have run out in the midst of a change to the model's executables.
  if (absl::IsResourceExhausted(status)) loaded_ = nullptr;
  ModelTaskOutput output;
  ModelTaskEnd& end = *output.mutable_end();
  end.set_code(static_cast<int>(status.code()));
  // A message may name files, and names of files are any bytes.
  end.set_message(ToUtf8(status.message()));
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    auto& added = *end.add_violations();
    added.set_field(violation.field);
    added.set_description(ToUtf8(violation.description));
  }
  return write(output);
}

}  // namespace tandem
