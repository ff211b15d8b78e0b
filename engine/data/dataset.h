#ifndef TANDEM_ENGINE_DATA_DATASET_H_
#define TANDEM_ENGINE_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/data/data_names.h"
#include "engine/data/normalization.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// What a sample consists of. Its elements, dense and row-major, are the step graph's `input`.
enum class SampleType : uint8_t {
  kBytes,   // uint8, such as pixels; normalised in the step.
  kFloats,  // float32, likewise.
  kTokens,  // int32, from 0 to DatasetInfo.classes - 1.
};

// What a sample's target is. The batch's, one behind the other, are the step graph's `target`.
enum class TargetType : uint8_t {
  kClass,   // int32 [batch], from 0 to DatasetInfo.classes - 1.
  kValues,  // float32 [batch, extents...]: regression, several labels.
  kTokens,  // int32 [batch, length], from 0 to DatasetInfo.classes - 1: the next token at each position.
  kClassProbabilities,  // float32 [batch, classes], adding up to 1 each: of training samples that are mixed.
};

constexpr DType DTypeOfSamples(SampleType type) {
  return type == SampleType::kBytes ? DType::kUInt8
                                    : (type == SampleType::kFloats ? DType::kFloat32 : DType::kInt32);
}
constexpr DType DTypeOfTargets(TargetType type) {
  return type == TargetType::kClass || type == TargetType::kTokens ? DType::kInt32 : DType::kFloat32;
}
// For messages: "bytes", "floats", "tokens".
absl::string_view ToString(SampleType type);
// For messages: "classes", "values", "tokens", "class probabilities".
absl::string_view ToString(TargetType type);

// What a data set holds, known without its samples.
struct DatasetInfo {
  Shape shape;          // Of one sample: [channels, height, width], [features] or [length].
  int64_t classes = 0;  // Labels are 0 .. classes - 1; of tokens, the vocabulary; 0 where targets are values.
  int64_t train_samples = 0;       // After DatasetSpec.train_limit.
  int64_t validation_samples = 0;  // After DatasetSpec.validation_limit; 0 where there is no validation.
  int64_t memory_bytes = 0;  // What it takes of the host's memory once opened, by all replicas together.
  SampleType sample_type = SampleType::kBytes;
  TargetType target_type = TargetType::kClass;
  Shape target_shape = Shape();  // Of one sample's target: [] for a class, [extents...], [length].
  bool mixes_classes = false;    // Training batches have class probabilities, where target_type is a class.
  // Of bytes and floats. Where it is to be computed from the data, the numbers of OpenDataset's result alone
  // are it; until then they are stand-ins of the right size.
  ResolvedNormalization normalization = {};
  std::vector<std::string> class_names = {};  // As many as classes, or none.
  // Labels follow from the names, as those of folders do: other names would be other labels.
  bool labels_follow_names = false;
  // Of a table's columns, in the order of the sample's and the target's numbers; none if it does not name
  // them.
  std::vector<std::string> feature_names = {};
  std::vector<std::string> target_names = {};
  // How many columns the table has, and the positions of its features.
  int64_t table_columns = 0;
  std::vector<int64_t> feature_positions = {};
  // All training samples are of one class, if the source knows it without its samples.
  bool one_label = false;
  // Of data with one class: what may have gone wrong, and the mend.
  std::string one_class_mend = {};
  // Sentences about what a person may not expect.
  std::vector<std::string> notices = {};

  // What training batches have as targets, and what one sample's is then like.
  TargetType train_target_type() const {
    return mixes_classes ? TargetType::kClassProbabilities : target_type;
  }
  Shape train_target_shape() const { return mixes_classes ? Shape({classes}) : target_shape; }
};

// Samples and their targets, by index; DatasetInfo says of what types and shapes. Thread-safe: immutable once
// opened.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  // Of one sample, and of one target.
  virtual int64_t sample_bytes() const = 0;
  virtual int64_t target_bytes() const = 0;
  // Writes the samples with `indices`, each below size(), one after the other, dense and row-major, to
  // `samples`, and their targets to `targets`. Both have room for indices.size() and are aligned for their
  // types.
  virtual void Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const = 0;
  // The same as epoch `epoch`, from 1, has them: where training samples are changed at random, anew in each
  // epoch.
  virtual void GatherEpoch(int64_t /*epoch*/, absl::Span<const uint32_t> indices, void* samples,
                           void* targets) const {
    Gather(indices, samples, targets);
  }
};

// A data set's two splits.
struct OpenedDataset {
  DatasetInfo info;
  std::unique_ptr<const Dataset> train;
  std::unique_ptr<const Dataset> validation;  // Null where there is none.
};

// Reads what is needed to know a data set: headers and labels, and that image files are as long as their
// headers say. The spec needs its source, with paths that can be opened as they are. Errors, all
// INVALID_ARGUMENT with the fields at fault relative to the spec ("idx.train_images"): a file that is
// missing, truncated, not IDX, of another type or rank, or larger than kMaxDatasetBytes; counts that differ;
// a label outside the classes; bad numbers.
//
// If `model` is given, columns, classes and characters are matched to the model's by name: samples, targets
// and labels are then as the model has them. Names that the model does not know, or columns that it misses,
// are INVALID_ARGUMENT too.
absl::StatusOr<DatasetInfo> DescribeDataset(const v1::DatasetSpec& spec, const DataNames* model = nullptr);

// The part of `spec` that decides on DescribeDataset's reading: the source, and class_names if they are
// given.
v1::DatasetSpec SourceAlone(const v1::DatasetSpec& spec);
// DescribeDataset(spec) from DescribeDataset(SourceAlone(spec)), which may be an error. Reads no file.
absl::StatusOr<DatasetInfo> DescribeFromSource(const v1::DatasetSpec& spec,
                                               const absl::StatusOr<DatasetInfo>& source);

// As DescribeDataset, and opens it for reading; samples of files are held in memory. Training samples are as
// the source has them; Augment (augment/augmenter.h) makes of them what an epoch trains on.
absl::StatusOr<OpenedDataset> OpenDataset(const v1::DatasetSpec& spec, const DataNames* model = nullptr);

// Takes some samples, one after the other as Dataset::Gather writes them, and their classes. `first` is the
// number of the first of them, from 0. `samples` is null for tokens, `classes` where targets are no classes.
using UseSamples =
    absl::FunctionRef<void(int64_t first, int64_t count, const void* samples, const int32_t* classes)>;

// Gives all training samples of OpenDataset(spec), piece by piece: a sample each time at least, in any order
// of pieces. The memory that it takes does not grow with their number, but for a few bytes a sample. Nothing
// is given of samples and targets that are both tokens. Errors as OpenDataset.
absl::Status StreamTraining(const v1::DatasetSpec& spec, UseSamples use);

// The largest file of samples that is read, decompressed.
inline constexpr int64_t kMaxDatasetBytes = int64_t{8} << 30;
// The most samples in a split.
inline constexpr int64_t kMaxSamples = int64_t{1} << 28;
// As many classes, or tokens of a vocabulary, as any data set may have, and as many more as a split has
// targets: more would cost memory and mean nothing.
inline constexpr int64_t kMaxClassesAnyway = int64_t{1} << 18;

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_DATASET_H_
