#include "engine/training/model_samples.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/layers/model.h"
#include "engine/losses/loss.h"
#include "engine/training/fit_data.h"
#include "engine/training/targets.h"

namespace tandem {
namespace {

// Checks that the images are resized like the model's training images.
absl::Status CheckResize(const v1::DatasetSpec& dataset, const TrainedOn& trained_on) {
  const auto way = [](std::optional<v1::ImageResize> resize) {
    return resize == v1::IMAGE_RESIZE_UNSPECIFIED ? v1::IMAGE_RESIZE_STRETCH : resize;
  };
  const std::optional<v1::ImageResize> here = way(ResizeOf(dataset)), there = way(trained_on.resize);
  if (!here.has_value() || !there.has_value() || here == there) return absl::OkStatus();
  return FieldError(dataset.has_webdataset() ? "dataset.webdataset.resize" : "dataset.image_folder.resize",
                    absl::StrCat("is ", v1::ImageResize_Name(*here), ", but the model was trained with ",
                                 v1::ImageResize_Name(*there), "; give this"));
}

// Checks that the samples have the shape of the model's input, and the targets that of its output.
absl::Status CheckShapes(const v1::JobSpec& spec, const Shape& output, const DatasetInfo& info) {
  const Shape input = InputShapeOf(spec.model());
  if (info.shape != input) {
    return FieldError("dataset", absl::StrCat("has samples ", info.shape.ToString(), ", but the model takes ",
                                              input.ToString()));
  }
  const Target target = ValidationTargetOf(info);
  if (const absl::Status fits = CheckLossTarget(spec.training().loss(), target); !fits.ok()) {
    return FieldError("dataset",
                      absl::StrCat("has ", ToString(info.target_type),
                                   " for targets, which the job's loss does not take: ", fits.message()));
  }
  const std::string fault = OutputFault(spec.training().loss(), target, output);
  if (!fault.empty()) return FieldError("dataset", absl::StrCat("does not fit the model, which ", fault));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelSamples> OpenModelSamples(const TrainedModel& model, const SampleChoice& choice) {
  const v1::JobSpec& spec = model.spec;
  ModelSamples chosen;
  const DataNames names = NamesOf(model.trained_on);
  // The model has its own normalization.
  v1::DatasetSpec dataset = choice.dataset;
  dataset.clear_normalization();
  if (dataset.has_npy() && dataset.npy().layout() == v1::ARRAY_LAYOUT_UNSPECIFIED &&
      model.trained_on.layout.has_value()) {
    dataset.mutable_npy()->set_layout(*model.trained_on.layout);
  }
  dataset = FitData(spec, std::move(dataset));
  TANDEM_RETURN_IF_ERROR(CheckResize(dataset, model.trained_on));
  absl::StatusOr<OpenedDataset> opened = OpenDataset(dataset, &names);
  if (!opened.ok()) return UnderField("dataset", opened.status());
  chosen.data = *std::move(opened);
  DatasetInfo& info = chosen.data.info;
  if (info.sample_type != model.trained_on.sample_type) {
    return FieldError(
        "dataset",
        absl::StrCat("has samples of ", ToString(info.sample_type), ", but the model was trained on ",
                     ToString(model.trained_on.sample_type), "; give samples that are made as those were"));
  }
  info.normalization = model.trained_on.normalization;
  info.mixes_classes = false;
  // Only samples of single classes or tokens have labels below the model's number of classes.
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Shape> outputs, CheckModel(spec.model()));
  const Shape& output = outputs.back();
  const bool one_label = info.target_type == TargetKind::kClass && output.rank() == 1;
  const bool labels = info.target_type == TargetKind::kTokens && output.rank() == 2;
  if (info.class_names.empty() && (one_label || labels)) {
    info.classes = std::max(info.classes, output[output.rank() - 1]);
  }
  for (const std::string& notice : info.notices) {
    if (choice.on_notice) choice.on_notice(notice);
  }
  TANDEM_RETURN_IF_ERROR(CheckShapes(spec, output, info));
  const bool training = choice.split == Split::kTraining ||
                        (choice.split == Split::kDefault && chosen.data.validation == nullptr);
  if (!training && chosen.data.validation == nullptr) {
    return FieldError("split", "is validation, but the data set has no validation samples");
  }
  if (training && choice.split == Split::kDefault && choice.is_own_dataset && choice.on_notice) {
    choice.on_notice("The job has no validation samples: its training samples are used.");
  }
  chosen.samples = training ? chosen.data.train.get() : chosen.data.validation.get();
  return chosen;
}

}  // namespace tandem
