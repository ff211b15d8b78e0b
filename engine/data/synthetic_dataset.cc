#include "engine/data/synthetic_dataset.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/philox.h"
#include "engine/base/status_macros.h"
#include "engine/data/statistics.h"

namespace tandem {
namespace {

constexpr int64_t kMaxSampleBytes = int64_t{1} << 28;
constexpr int64_t kMaxPatternBytes = int64_t{1} << 30;

// The patterns of all classes, one after the other. A vector for each pattern would take many times the
// memory of small samples.
using Patterns = std::vector<uint8_t>;

// Calls write(i, byte) with random bytes for i in [0, size).
template <typename Write>
void ForRandomBytes(RandomStream& random, int64_t size, const Write& write) {
  for (int64_t i = 0; i < size;) {
    for (uint32_t word : random.NextBlock()) {
      for (int k = 0; k < 4 && i < size; ++k, word >>= 8) write(i++, static_cast<uint8_t>(word));
    }
  }
}

std::shared_ptr<const Patterns> MakePatterns(uint64_t seed, int64_t classes, int64_t bytes) {
  auto patterns = std::make_shared<Patterns>(classes * bytes);
  for (int64_t c = 0; c < classes; ++c) {
    RandomStream random(seed, RandomPurpose::kSyntheticPattern, 0, c);
    uint8_t* const pattern = patterns->data() + c * bytes;
    ForRandomBytes(random, bytes, [&](int64_t i, uint8_t byte) { pattern[i] = byte; });
  }
  return patterns;
}

class SyntheticDataset final : public Dataset {
 public:
  // `split` is 0 for training and 1 for validation.
  SyntheticDataset(uint64_t seed, int split, Shape shape, int64_t size,
                   std::shared_ptr<const Patterns> patterns)
      : seed_(seed), split_(split), shape_(std::move(shape)), size_(size), patterns_(std::move(patterns)) {}

  int64_t size() const override { return size_; }
  int64_t sample_bytes() const override { return shape_.elements(); }
  int64_t target_bytes() const override { return sizeof(int32_t); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    uint8_t* images = static_cast<uint8_t*>(samples);
    int32_t* labels = static_cast<int32_t*>(targets);
    const int64_t bytes = shape_.elements();
    for (const uint32_t index : indices) {
      RandomStream random(seed_, RandomPurpose::kSyntheticSample, split_, index);
      const uint32_t label = random.NextBelow(static_cast<uint32_t>(patterns_->size() / bytes));
      const uint8_t* pattern = patterns_->data() + label * bytes;
      ForRandomBytes(random, bytes,
                     [&](int64_t i, uint8_t byte) { images[i] = (pattern[i] + byte + 1) / 2; });
      images += bytes;
      *labels++ = static_cast<int32_t>(label);
    }
    return absl::OkStatus();
  }

 private:
  const uint64_t seed_;
  const int split_;
  const Shape shape_;
  const int64_t size_;
  const std::shared_ptr<const Patterns> patterns_;
};

// Targets are numbers in [0, 1): each is the weight of the first of two patterns.
class SyntheticValues final : public Dataset {
 public:
  SyntheticValues(uint64_t seed, int split, Shape shape, int64_t values, int64_t size,
                  std::shared_ptr<const Patterns> patterns)
      : seed_(seed),
        split_(split),
        shape_(std::move(shape)),
        values_(values),
        size_(size),
        patterns_(std::move(patterns)) {}

  int64_t size() const override { return size_; }
  int64_t sample_bytes() const override { return shape_.elements(); }
  int64_t target_bytes() const override { return values_ * static_cast<int64_t>(sizeof(float)); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    auto* sample = static_cast<uint8_t*>(samples);
    auto* target = static_cast<float*>(targets);
    const int64_t bytes = shape_.elements();
    for (const uint32_t index : indices) {
      RandomStream random(seed_, RandomPurpose::kSyntheticSample, split_, index);
      for (int64_t v = 0; v < values_; ++v) target[v] = static_cast<float>(random.NextUniform());
      for (int64_t i = 0; i < bytes; ++i) {
        float sum = 0;
        for (int64_t v = 0; v < values_; ++v) {
          const uint8_t* pair = patterns_->data() + 2 * v * bytes + i;
          sum += target[v] * pair[0] + (1 - target[v]) * pair[bytes];
        }
        sample[i] = static_cast<uint8_t>(sum / values_ + 0.5F);
      }
      sample += bytes;
      target += values_;
    }
    return absl::OkStatus();
  }

 private:
  const uint64_t seed_;
  const int split_;
  const Shape shape_;
  const int64_t values_;
  const int64_t size_;
  const std::shared_ptr<const Patterns> patterns_;
};

// Every eighth token, on average, is random.
constexpr uint32_t kSurprise = 8;

class SyntheticTokens final : public Dataset {
 public:
  SyntheticTokens(uint64_t seed, int split, int64_t length, uint32_t vocabulary, int64_t size)
      : seed_(seed), split_(split), length_(length), vocabulary_(vocabulary), size_(size) {
    next_.reserve(vocabulary);
    for (uint32_t token = 0; token < vocabulary; ++token) {
      next_.push_back(RandomStream(seed, RandomPurpose::kSyntheticPattern, 1, token).NextBelow(vocabulary));
    }
  }

  int64_t size() const override { return size_; }
  int64_t sample_bytes() const override { return length_ * static_cast<int64_t>(sizeof(int32_t)); }
  int64_t target_bytes() const override { return sample_bytes(); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    auto* sample = static_cast<int32_t*>(samples);
    auto* target = static_cast<int32_t*>(targets);
    for (const uint32_t index : indices) {
      RandomStream random(seed_, RandomPurpose::kSyntheticSample, split_, index);
      uint32_t token = random.NextBelow(vocabulary_);
      for (int64_t i = 0; i < length_; ++i) {
        *sample++ = static_cast<int32_t>(token);
        token = random.NextBelow(kSurprise) == 0 ? random.NextBelow(vocabulary_) : next_[token];
        *target++ = static_cast<int32_t>(token);
      }
    }
    return absl::OkStatus();
  }

 private:
  const uint64_t seed_;
  const int split_;
  const int64_t length_;
  const uint32_t vocabulary_;
  const int64_t size_;
  std::vector<uint32_t> next_;
};

enum class Kind { kClasses, kValues, kTokens };

Kind KindOf(const v1::SyntheticSource& source) {
  return source.vocabulary() != 0 ? Kind::kTokens : source.values() != 0 ? Kind::kValues : Kind::kClasses;
}

// Returns the number of patterns that a source needs.
int64_t PatternCount(const v1::SyntheticSource& source) {
  switch (KindOf(source)) {
    case Kind::kClasses:
      return source.classes();
    case Kind::kValues:
      return 2 * source.values();
    case Kind::kTokens:
      break;
  }
  return 0;
}

void CheckNumber(absl::string_view field, int64_t value, int64_t least, int64_t most,
                 FieldViolations& violations) {
  if (value >= least && value <= most) return;
  violations.Add(absl::StrCat("synthetic.", field),
                 absl::StrCat("is ", value, "; it must be from ", least, " to ", most));
}

// Checks that the source has a single kind of target, and that its patterns are not too large.
void CheckTargets(const v1::SyntheticSource& source, const Shape& shape, FieldViolations& violations) {
  const int64_t elements = std::max<int64_t>(1, shape.elements());
  const int64_t most = kMaxPatternBytes / elements;
  switch (KindOf(source)) {
    case Kind::kClasses:
      if (source.classes() < 2) {
        violations.Add("synthetic.classes", absl::StrCat("is ", source.classes(), "; it must be at least 2"));
      } else if (source.classes() > most) {
        violations.Add("synthetic.classes", absl::StrCat("is ", source.classes(), "; samples of shape ",
                                                         shape.ToString(), " may have at most ", most));
      }
      return;
    case Kind::kValues:
      CheckNumber("values", source.values(), 1, std::min<int64_t>(1 << 20, most / 2), violations);
      break;
    case Kind::kTokens:
      CheckNumber("vocabulary", source.vocabulary(), 2, 1 << 24, violations);
      if (source.values() != 0) violations.Add("synthetic.values", "is given together with vocabulary");
      break;
  }
  if (source.classes() != 0) {
    violations.Add("synthetic.classes", "is given, but the targets are no classes; leave it out");
  }
}

}  // namespace

absl::StatusOr<DatasetInfo> DescribeSynthetic(const v1::SyntheticSource& source) {
  FieldViolations violations;
  const Shape shape(std::vector<int64_t>(source.shape().begin(), source.shape().end()));
  const bool tokens = KindOf(source) == Kind::kTokens;
  if (shape.rank() != 1 && (tokens || shape.rank() != 3)) {
    violations.Add("synthetic.shape",
                   absl::StrCat("has ", shape.rank(), " dimensions; give ",
                                tokens ? "[length]" : "[channels, height, width] or [features]"));
  }
  bool positive = true;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] >= 1) continue;
    violations.Add(absl::StrCat("synthetic.shape[", i, "]"),
                   absl::StrCat("is ", shape[i], "; it must be at least 1"));
    positive = false;
  }
  if (positive && shape.elements() > kMaxSampleBytes) {
    violations.Add("synthetic.shape", absl::StrCat(shape.ToString(), " is more than the ", kMaxSampleBytes,
                                                   " elements that a sample may have"));
    positive = false;
  }
  CheckTargets(source, positive ? shape : Shape(), violations);
  CheckNumber("train_samples", source.train_samples(), 1, kMaxSamples, violations);
  CheckNumber("validation_samples", source.validation_samples(), 0, kMaxSamples, violations);
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  DatasetInfo info{.shape = shape,
                   .classes = source.classes(),
                   .train_samples = source.train_samples(),
                   .validation_samples = source.validation_samples(),
                   .memory_bytes = PatternCount(source) * shape.elements()};
  switch (KindOf(source)) {
    case Kind::kClasses:
      break;
    case Kind::kValues:
      info.target_type = TargetKind::kValues;
      info.target_shape = Shape({source.values()});
      break;
    case Kind::kTokens:
      info.sample_type = SampleType::kTokens;
      info.target_type = TargetKind::kTokens;
      info.target_shape = shape;
      info.classes = source.vocabulary();
      info.memory_bytes = source.vocabulary() * static_cast<int64_t>(sizeof(uint32_t));
      break;
  }
  return info;
}

absl::Status StreamSynthetic(const v1::SyntheticSource& source, UseSamples use) {
  TANDEM_ASSIGN_OR_RETURN(const OpenedDataset opened, OpenSynthetic(source));
  // Their targets are also tokens.
  if (opened.info.sample_type == SampleType::kTokens) return absl::OkStatus();
  const bool have_classes = opened.info.target_type == TargetKind::kClass;
  return ForAllSamples(
      *opened.train, [&](int64_t first, int64_t count, const void* samples, const void* targets) {
        use(first, count, samples, have_classes ? static_cast<const int32_t*>(targets) : nullptr);
      });
}

absl::StatusOr<OpenedDataset> OpenSynthetic(const v1::SyntheticSource& source) {
  OpenedDataset opened;
  TANDEM_ASSIGN_OR_RETURN(opened.info, DescribeSynthetic(source));
  const DatasetInfo& info = opened.info;
  const auto patterns = MakePatterns(source.seed(), PatternCount(source), info.shape.elements());
  const auto make = [&](int split, int64_t samples) -> std::unique_ptr<const Dataset> {
    switch (KindOf(source)) {
      case Kind::kClasses:
        break;
      case Kind::kValues:
        return std::make_unique<SyntheticValues>(source.seed(), split, info.shape, source.values(), samples,
                                                 patterns);
      case Kind::kTokens:
        return std::make_unique<SyntheticTokens>(source.seed(), split, info.shape[0],
                                                 static_cast<uint32_t>(source.vocabulary()), samples);
    }
    return std::make_unique<SyntheticDataset>(source.seed(), split, info.shape, samples, patterns);
  };
  opened.train = make(0, info.train_samples);
  if (info.validation_samples > 0) opened.validation = make(1, info.validation_samples);
  return opened;
}

}  // namespace tandem
