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

namespace tandem {
namespace {

constexpr int64_t kMaxSampleBytes = int64_t{1} << 28;
constexpr int64_t kMaxPatternBytes = int64_t{1} << 30;

// Of all classes, one behind the other: a vector each would take many times the memory where samples are
// small.
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
  void Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
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
  }

 private:
  const uint64_t seed_;
  const int split_;
  const Shape shape_;
  const int64_t size_;
  const std::shared_ptr<const Patterns> patterns_;
};

int64_t Limited(int64_t samples, int64_t limit) { return limit > 0 ? std::min(samples, limit) : samples; }

}  // namespace

absl::StatusOr<DatasetInfo> DescribeSynthetic(const v1::SyntheticSource& source, int64_t train_limit,
                                              int64_t validation_limit) {
  FieldViolations violations;
  const Shape shape(std::vector<int64_t>(source.shape().begin(), source.shape().end()));
  if (shape.rank() != 1 && shape.rank() != 3) {
    violations.Add(
        "synthetic.shape",
        absl::StrCat("has ", shape.rank(), " dimensions; give [channels, height, width] or [features]"));
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
  } else if (positive && source.classes() > kMaxPatternBytes / std::max<int64_t>(shape.elements(), 1)) {
    violations.Add("synthetic.classes",
                   absl::StrCat("is ", source.classes(), "; samples of shape ", shape.ToString(),
                                " may have at most ", kMaxPatternBytes / shape.elements()));
  }
  if (source.classes() < 2) {
    violations.Add("synthetic.classes", absl::StrCat("is ", source.classes(), "; it must be at least 2"));
  }
  if (source.train_samples() < 1 || source.train_samples() > kMaxSamples) {
    violations.Add("synthetic.train_samples",
                   absl::StrCat("is ", source.train_samples(), "; it must be from 1 to ", kMaxSamples));
  }
  if (source.validation_samples() < 0 || source.validation_samples() > kMaxSamples) {
    violations.Add("synthetic.validation_samples",
                   absl::StrCat("is ", source.validation_samples(), "; it must be from 0 to ", kMaxSamples));
  }
  if (train_limit < 0)
    violations.Add("train_limit", absl::StrCat("is ", train_limit, "; it must not be negative"));
  if (validation_limit < 0) {
    violations.Add("validation_limit", absl::StrCat("is ", validation_limit, "; it must not be negative"));
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return DatasetInfo{.shape = shape,
                     .classes = source.classes(),
                     .train_samples = Limited(source.train_samples(), train_limit),
                     .validation_samples = Limited(source.validation_samples(), validation_limit),
                     .memory_bytes = source.classes() * shape.elements()};
}

absl::StatusOr<OpenedDataset> OpenSynthetic(const v1::SyntheticSource& source, int64_t train_limit,
                                            int64_t validation_limit) {
  OpenedDataset opened;
  TANDEM_ASSIGN_OR_RETURN(opened.info, DescribeSynthetic(source, train_limit, validation_limit));
  const DatasetInfo& info = opened.info;
  const auto patterns = MakePatterns(source.seed(), info.classes, info.shape.elements());
  opened.train =
      std::make_unique<SyntheticDataset>(source.seed(), 0, info.shape, info.train_samples, patterns);
  if (info.validation_samples > 0) {
    opened.validation =
        std::make_unique<SyntheticDataset>(source.seed(), 1, info.shape, info.validation_samples, patterns);
  }
  return opened;
}

}  // namespace tandem
