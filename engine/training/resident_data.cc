#include "engine/training/resident_data.h"

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/data/augment/augmenter.h"
#include "engine/graph/ops/augmentation.h"
#include "engine/graph/ops/gather_samples.h"
#include "engine/metrics/evaluator.h"

namespace tandem {
namespace {

std::string NameOf(DataSplit split, const char* what) {
  return absl::StrCat(kDataPrefix, split == DataSplit::kTraining ? "training_" : "validation_", what);
}

// Return the types and shapes of a whole split.
TensorType SamplesOf(const DatasetInfo& data, int64_t size) {
  return {DTypeOfSamples(data.sample_type), data.shape.Batched(size)};
}
TensorType TargetsOf(const DatasetInfo& data, int64_t size) {
  return {DTypeOfTargets(data.target_type), data.target_shape.Batched(size)};
}

ImageFill FillOf(v1::FillMode fill) {
  switch (fill) {
    case v1::FILL_MODE_REFLECT:
      return ImageFill::kReflect;
    case v1::FILL_MODE_EDGE:
      return ImageFill::kEdge;
    default:
      return ImageFill::kZero;
  }
}

// Returns the op for an augmentation on a device, with its numbers from `column` on, or null if only the host
// can do it.
std::shared_ptr<const AugmentOp> OpOf(const v1::Augmentation& augmentation, int64_t column) {
  switch (augmentation.kind_case()) {
    case v1::Augmentation::kHorizontalFlip:
      return std::make_shared<FlipImagesOp>(column, /*vertical=*/false);
    case v1::Augmentation::kVerticalFlip:
      return std::make_shared<FlipImagesOp>(column, /*vertical=*/true);
    case v1::Augmentation::kTranslation:
      return std::make_shared<TranslateImagesOp>(column, FillOf(augmentation.translation().fill()));
    case v1::Augmentation::kCrop:
      return std::make_shared<TranslateImagesOp>(column, FillOf(augmentation.crop().fill()));
    case v1::Augmentation::kRotation:
      return std::make_shared<ResampleImagesOp>(column, FillOf(augmentation.rotation().fill()));
    case v1::Augmentation::kScale:
      return std::make_shared<ResampleImagesOp>(column, FillOf(augmentation.scale().fill()));
    case v1::Augmentation::kErase:
      return std::make_shared<EraseImagesOp>(column);
    case v1::Augmentation::kBrightness:
      return std::make_shared<SpreadImagesOp>(column, /*about_mean=*/false);
    case v1::Augmentation::kContrast:
      return std::make_shared<SpreadImagesOp>(column, /*about_mean=*/true);
    case v1::Augmentation::kResizedCrop:
      return std::make_shared<EnlargeImagesOp>(column);
    case v1::Augmentation::kSaturation:
      return std::make_shared<SaturateImagesOp>(column);
    case v1::Augmentation::kHue:
      return std::make_shared<ShiftHuesOp>(column);
    case v1::Augmentation::kMixup:
    case v1::Augmentation::kCutmix:
    case v1::Augmentation::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

// Gives the indices of samples and the random numbers of each.
class Picks final : public Dataset {
 public:
  // `draws` may be null.
  Picks(int64_t size, std::unique_ptr<const AugmentationDraws> draws)
      : size_(size), draws_(std::move(draws)), columns_(draws_ == nullptr ? 0 : draws_->columns()) {}

  int64_t size() const override { return size_; }
  int64_t sample_bytes() const override { return sizeof(int32_t); }
  int64_t target_bytes() const override { return columns_ * static_cast<int64_t>(sizeof(double)); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    return GatherEpoch(0, indices, samples, targets);
  }
  absl::Status GatherEpoch(int64_t epoch, absl::Span<const uint32_t> indices, void* samples,
                           void* targets) const override {
    // Data sets have at most 2^28 samples, so signed and unsigned indices are equal.
    std::memcpy(samples, indices.data(), indices.size() * sizeof(uint32_t));
    if (draws_ == nullptr) return absl::OkStatus();
    auto* drawn = static_cast<double*>(targets);
    for (const uint32_t index : indices) {
      draws_->Draw(epoch, index, drawn);
      drawn += columns_;
    }
    return absl::OkStatus();
  }

 private:
  const int64_t size_;
  const std::unique_ptr<const AugmentationDraws> draws_;
  const int64_t columns_;
};

}  // namespace

std::string WhyNotResident(const v1::JobSpec& spec, const DatasetInfo& data) {
  if (data.sample_type == SampleType::kTokens) return "the samples are tokens, which stay on the host";
  if (data.stays_in_files) return "pictures in shards are decoded for each batch, on the host";
  if (data.mixes_classes) return "mixup and cutmix are made on the host alone";
  const Augmentations& augmentations = spec.dataset().augmentation();
  if (augmentations.empty()) return "";
  if (data.sample_type != SampleType::kBytes || data.shape.rank() != 3) {
    return "images of other numbers than bytes are changed at random on the host alone";
  }
  for (int i = 0; i < augmentations.size(); ++i) {
    if (OpOf(augmentations[i], 0) == nullptr) {
      return absl::StrCat("dataset.augmentation[", i, "] is made on the host alone");
    }
  }
  return "";
}

bool WantsResidentData(const v1::JobSpec& spec, const DatasetInfo& data) {
  return spec.replicas().device_kind() == v1::DEVICE_KIND_GPU &&
         spec.gpu().data() != v1::GpuOptions::DATA_PLACEMENT_HOST_MEMORY &&
         WhyNotResident(spec, data).empty();
}

bool ValidatesResident(const v1::JobSpec& spec) { return !Evaluator::IsNeeded(spec.training()); }

absl::StatusOr<ResidentBatch> AddResidentBatch(const v1::JobSpec& spec, const DatasetInfo& data,
                                               DataSplit split, int64_t samples, Graph& graph) {
  const bool training = split == DataSplit::kTraining;
  const int64_t size = training ? data.train_samples : data.validation_samples;
  // Meters are not a part of a checkpoint.
  const auto declare = [&](const char* what, const TensorType& type) {
    return graph.AddVariable(NameOf(split, what), VariableKind::kMeter, type.dtype, type.shape);
  };
  const ValueId indices = graph.AddInput(kIndicesInput, DType::kInt32, Shape({samples}));
  const ValueId all_samples = declare("samples", SamplesOf(data, size));
  const ValueId all_targets = declare("targets", TargetsOf(data, size));
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<ValueId> gathered,
      graph.AddNode(std::make_shared<GatherSamplesOp>(), {indices, all_samples, all_targets}));
  ResidentBatch batch = {.samples = gathered[0], .targets = gathered[1]};
  const Augmentations& augmentations = spec.dataset().augmentation();
  if (!training || augmentations.empty()) return batch;
  std::vector<std::shared_ptr<const AugmentOp>> ops;
  int64_t columns = 0;
  for (const v1::Augmentation& augmentation : augmentations) {
    ops.push_back(OpOf(augmentation, columns));
    columns += ops.back()->columns();
  }
  const ValueId drawn = graph.AddInput(kDrawnInput, DType::kFloat64, Shape({samples, columns}));
  for (std::shared_ptr<const AugmentOp>& op : ops) {
    TANDEM_ASSIGN_OR_RETURN(batch.samples, graph.Add(std::move(op), {batch.samples, drawn}));
  }
  return batch;
}

bool HasData(const Variables& variables, DataSplit split) {
  return variables.kind(NameOf(split, "samples")).ok();
}

absl::Status UploadData(const Dataset& dataset, const DatasetInfo& data, DataSplit split,
                        Variables* variables) {
  std::vector<uint32_t> all(dataset.size());
  std::iota(all.begin(), all.end(), 0);
  const TensorType samples_type = SamplesOf(data, dataset.size());
  const TensorType targets_type = TargetsOf(data, dataset.size());
  Tensor samples(samples_type.dtype, samples_type.shape);
  Tensor targets(targets_type.dtype, targets_type.shape);
  if (absl::Status status = dataset.Gather(all, samples.raw_data(), targets.raw_data()); !status.ok()) {
    return DataError(absl::Status(status.code(), absl::StrCat("cannot read samples: ", status.message())));
  }
  TANDEM_RETURN_IF_ERROR(variables->Write(NameOf(split, "samples"), samples));
  return variables->Write(NameOf(split, "targets"), targets);
}

std::unique_ptr<const Dataset> MakePicks(const v1::JobSpec& spec, const DatasetInfo& data, DataSplit split) {
  const Augmentations& augmentations = spec.dataset().augmentation();
  const bool training = split == DataSplit::kTraining;
  std::unique_ptr<const AugmentationDraws> draws;
  if (training && !augmentations.empty()) {
    draws = DrawFor(augmentations, data, spec.training().seed());
  }
  return std::make_unique<Picks>(training ? data.train_samples : data.validation_samples, std::move(draws));
}

}  // namespace tandem
