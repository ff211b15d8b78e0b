#include "engine/data/augment/augmenter.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/philox.h"
#include "engine/base/status_macros.h"
#include "engine/data/augment/affine.h"
#include "engine/data/augment/colour.h"
#include "engine/data/augment/cutmix.h"
#include "engine/data/augment/erase.h"
#include "engine/data/augment/factor.h"
#include "engine/data/augment/flip.h"
#include "engine/data/augment/mixing.h"
#include "engine/data/augment/mixup.h"
#include "engine/data/augment/resized_crop.h"
#include "engine/data/augment/transform.h"
#include "engine/data/augment/translation.h"

namespace tandem {
namespace {

// Samples that are no images have the shape [1, 1, elements]. Only mixup reads it.
ImageShape ImageShapeOf(const Shape& shape) {
  if (shape.rank() == 3) return {.channels = shape[0], .height = shape[1], .width = shape[2]};
  return {.channels = 1, .height = 1, .width = shape.elements()};
}

bool IsMixing(const v1::Augmentation& augmentation) {
  return augmentation.has_mixup() || augmentation.has_cutmix();
}

// The name of a message's field, and its fault.
struct Checked {
  const char* field;
  absl::Status status;
};

Checked Check(const v1::Augmentation& augmentation, const ImageShape& shape, SampleType type) {
  switch (augmentation.kind_case()) {
    case v1::Augmentation::kHorizontalFlip:
      return {"horizontal_flip", CheckFlip(augmentation.horizontal_flip())};
    case v1::Augmentation::kVerticalFlip:
      return {"vertical_flip", CheckFlip(augmentation.vertical_flip())};
    case v1::Augmentation::kTranslation:
      return {"translation", CheckTranslation(augmentation.translation(), shape)};
    case v1::Augmentation::kCrop:
      return {"crop", CheckCrop(augmentation.crop(), shape)};
    case v1::Augmentation::kRotation:
      return {"rotation", CheckRotation(augmentation.rotation())};
    case v1::Augmentation::kScale:
      return {"scale", CheckScale(augmentation.scale())};
    case v1::Augmentation::kErase:
      return {"erase", CheckErase(augmentation.erase())};
    case v1::Augmentation::kBrightness:
      return {"brightness", CheckFactor(augmentation.brightness())};
    case v1::Augmentation::kContrast:
      return {"contrast", CheckFactor(augmentation.contrast())};
    case v1::Augmentation::kMixup:
      return {"mixup", CheckMixup(augmentation.mixup())};
    case v1::Augmentation::kCutmix:
      return {"cutmix", CheckCutmix(augmentation.cutmix())};
    case v1::Augmentation::kResizedCrop:
      return {"resized_crop", CheckResizedCrop(augmentation.resized_crop(), shape)};
    case v1::Augmentation::kSaturation:
      return {"saturation", CheckSaturation(augmentation.saturation(), shape)};
    case v1::Augmentation::kHue:
      return {"hue", CheckHue(augmentation.hue(), shape, type)};
    case v1::Augmentation::KIND_NOT_SET:
      break;
  }
  return {"", absl::InvalidArgumentError("names no change that is known; give one, such as horizontal_flip")};
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeTransform(const v1::Augmentation& augmentation,
                                                  const ImageShape& shape) {
  switch (augmentation.kind_case()) {
    case v1::Augmentation::kHorizontalFlip:
      return MakeHorizontalFlip<T>(augmentation.horizontal_flip(), shape);
    case v1::Augmentation::kVerticalFlip:
      return MakeVerticalFlip<T>(augmentation.vertical_flip(), shape);
    case v1::Augmentation::kTranslation:
      return MakeTranslation<T>(augmentation.translation(), shape);
    case v1::Augmentation::kCrop:
      return MakeCrop<T>(augmentation.crop(), shape);
    case v1::Augmentation::kRotation:
      return MakeRotation<T>(augmentation.rotation(), shape);
    case v1::Augmentation::kScale:
      return MakeScale<T>(augmentation.scale(), shape);
    case v1::Augmentation::kErase:
      return MakeErase<T>(augmentation.erase(), shape);
    case v1::Augmentation::kBrightness:
      return MakeBrightness<T>(augmentation.brightness(), shape);
    case v1::Augmentation::kContrast:
      return MakeContrast<T>(augmentation.contrast(), shape);
    case v1::Augmentation::kResizedCrop:
      return MakeResizedCrop<T>(augmentation.resized_crop(), shape);
    case v1::Augmentation::kSaturation:
      return MakeSaturation<T>(augmentation.saturation(), shape);
    case v1::Augmentation::kHue:
      if constexpr (std::is_same_v<T, uint8_t>) return MakeHue(augmentation.hue(), shape);
      break;  // CheckAugmentation refuses hue for floats.
    case v1::Augmentation::kMixup:
    case v1::Augmentation::kCutmix:
    case v1::Augmentation::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

template <typename T>
class AugmentedDataset final : public Dataset {
 public:
  AugmentedDataset(std::unique_ptr<const Dataset> train, const Augmentations& augmentations,
                   const DatasetInfo& info, uint64_t seed, std::shared_ptr<const ClassSamples> balanced)
      : train_(std::move(train)),
        seed_(seed),
        elements_(info.shape.elements()),
        classes_(info.classes),
        balanced_(std::move(balanced)) {
    const ImageShape shape = ImageShapeOf(info.shape);
    for (const v1::Augmentation& augmentation : augmentations) {
      if (augmentation.has_mixup()) {
        mixing_ = MakeMixup<T>(augmentation.mixup(), elements_);
      } else if (augmentation.has_cutmix()) {
        mixing_ = MakeCutmix<T>(augmentation.cutmix(), shape);
      } else {
        transforms_.push_back(MakeTransform<T>(augmentation, shape));
      }
    }
  }

  int64_t size() const override { return train_->size(); }
  int64_t sample_bytes() const override { return train_->sample_bytes(); }
  int64_t target_bytes() const override {
    return mixing_ == nullptr ? train_->target_bytes() : classes_ * static_cast<int64_t>(sizeof(float));
  }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    return GatherEpoch(0, indices, samples, targets);
  }

  absl::Status GatherEpoch(int64_t epoch, absl::Span<const uint32_t> indices, void* samples,
                           void* targets) const override {
    std::vector<T> scratch(elements_);
    auto* sample = static_cast<T*>(samples);
    if (mixing_ == nullptr) {
      TANDEM_RETURN_IF_ERROR(train_->Gather(indices, samples, targets));
      for (const uint32_t index : indices) {
        Change(RandomPurpose::kAugmentation, epoch, index, scratch, sample);
        sample += elements_;
      }
      return absl::OkStatus();
    }
    std::vector<T> partner(elements_);
    std::vector<int32_t> labels(indices.size());
    TANDEM_RETURN_IF_ERROR(train_->Gather(indices, samples, labels.data()));
    auto* probabilities = static_cast<float*>(targets);
    std::fill(probabilities, probabilities + indices.size() * classes_, 0.0F);
    for (size_t i = 0; i < indices.size(); ++i, sample += elements_, probabilities += classes_) {
      Change(RandomPurpose::kAugmentation, epoch, indices[i], scratch, sample);
      RandomStream random(seed_, RandomPurpose::kMixing, epoch, indices[i]);
      const uint32_t other = DrawPartner(random);
      int32_t label = 0;
      TANDEM_RETURN_IF_ERROR(train_->Gather({other}, partner.data(), &label));
      Change(RandomPurpose::kPartner, epoch, indices[i], scratch, partner.data());
      const double own = mixing_->Apply(random, partner.data(), sample);
      probabilities[labels[i]] += static_cast<float>(own);
      probabilities[label] += static_cast<float>(1 - own);
    }
    return absl::OkStatus();
  }

 private:
  uint32_t DrawPartner(RandomStream& random) const {
    if (balanced_ == nullptr) return random.NextBelow(static_cast<uint32_t>(train_->size()));
    const std::vector<uint32_t>& members =
        (*balanced_)[random.NextBelow(static_cast<uint32_t>(balanced_->size()))];
    return members[random.NextBelow(static_cast<uint32_t>(members.size()))];
  }

  void Change(RandomPurpose purpose, int64_t epoch, uint32_t index, std::vector<T>& scratch,
              T* sample) const {
    if (transforms_.empty()) return;
    RandomStream random(seed_, purpose, epoch, index);
    double drawn[kMostDrawn];
    for (const auto& transform : transforms_) {
      transform->Draw(random, drawn);
      transform->Apply(drawn, sample, scratch.data());
    }
  }

  const std::unique_ptr<const Dataset> train_;
  const uint64_t seed_;
  const int64_t elements_;
  const int64_t classes_;
  const std::shared_ptr<const ClassSamples> balanced_;  // Null if all samples are equally likely partners.
  std::vector<std::unique_ptr<const Transform<T>>> transforms_;
  std::unique_ptr<const Mixing<T>> mixing_;
};

// Draws the numbers of the transforms for the samples of an epoch.
class Draws final : public AugmentationDraws {
 public:
  Draws(const Augmentations& augmentations, const DatasetInfo& info, uint64_t seed) : seed_(seed) {
    const ImageShape shape = ImageShapeOf(info.shape);
    for (const v1::Augmentation& augmentation : augmentations) {
      transforms_.push_back(MakeTransform<uint8_t>(augmentation, shape));
      columns_ += transforms_.back()->numbers();
    }
  }
  int64_t columns() const override { return columns_; }
  void Draw(int64_t epoch, uint32_t index, double* drawn) const override {
    RandomStream random(seed_, RandomPurpose::kAugmentation, epoch, index);
    for (const auto& transform : transforms_) {
      transform->Draw(random, drawn);
      drawn += transform->numbers();
    }
  }

 private:
  const uint64_t seed_;
  int64_t columns_ = 0;
  std::vector<std::unique_ptr<const Transform<uint8_t>>> transforms_;
};

}  // namespace

bool MixesClasses(const Augmentations& augmentations) {
  return std::any_of(augmentations.begin(), augmentations.end(), IsMixing);
}

absl::Status CheckAugmentation(const Augmentations& augmentations, const DatasetInfo& info) {
  FieldViolations violations;
  if (augmentations.empty()) return absl::OkStatus();
  if (info.sample_type == SampleType::kTokens) {
    return FieldError("augmentation", "is given, but the samples are tokens; leave it out");
  }
  const bool images = info.shape.rank() == 3;
  const ImageShape shape = ImageShapeOf(info.shape);
  for (int i = 0; i < augmentations.size(); ++i) {
    const v1::Augmentation& augmentation = augmentations[i];
    const Checked checked = Check(augmentation, shape, info.sample_type);
    const std::string field =
        absl::StrCat("augmentation[", i, "]", *checked.field == 0 ? "" : ".", checked.field);
    if (!images && !augmentation.has_mixup() && *checked.field != 0) {
      violations.Add(field,
                     absl::StrCat("needs samples [channels, height, width], but those of the data set are ",
                                  info.shape.ToString()));
      continue;
    }
    violations.AddAll(field, checked.status);
    if (!IsMixing(augmentation)) continue;
    if (i + 1 < augmentations.size()) {
      violations.Add(field, "must be the last of the list");
    }
    if (info.target_type != TargetKind::kClass) {
      violations.Add(
          field, absl::StrCat("mixes classes, but the data set's targets are ", ToString(info.target_type)));
    }
  }
  return violations.ToStatus();
}

std::unique_ptr<const Dataset> Augment(std::unique_ptr<const Dataset> train,
                                       const Augmentations& augmentations, const DatasetInfo& info,
                                       uint64_t seed, std::shared_ptr<const ClassSamples> classes) {
  if (augmentations.empty()) return train;
  if (info.sample_type == SampleType::kBytes) {
    return std::make_unique<AugmentedDataset<uint8_t>>(std::move(train), augmentations, info, seed,
                                                       std::move(classes));
  }
  return std::make_unique<AugmentedDataset<float>>(std::move(train), augmentations, info, seed,
                                                   std::move(classes));
}

std::unique_ptr<const AugmentationDraws> DrawFor(const Augmentations& augmentations, const DatasetInfo& info,
                                                 uint64_t seed) {
  return std::make_unique<Draws>(augmentations, info, seed);
}

}  // namespace tandem
