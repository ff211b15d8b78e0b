#ifndef TANDEM_ENGINE_DATA_DATASET_H_
#define TANDEM_ENGINE_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <optional>
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
#include "engine/tensor/target.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/layer.pb.h"
#include "tandem/v1/table.pb.h"

namespace tandem {

// The elements of a sample. They are the step graph's `input`, dense and row-major.
enum class SampleType : uint8_t {
  kBytes,   // uint8, such as pixels. The step normalises them.
  kFloats,  // float32. The step normalises them.
  kTokens,  // int32, from 0 to DatasetInfo.classes - 1.
};

constexpr DType DTypeOfSamples(SampleType type) {
  return type == SampleType::kBytes ? DType::kUInt8
                                    : (type == SampleType::kFloats ? DType::kFloat32 : DType::kInt32);
}
constexpr DType DTypeOfTargets(TargetKind type) {
  return type == TargetKind::kClass || type == TargetKind::kTokens ? DType::kInt32 : DType::kFloat32;
}
// Returns "bytes", "floats" or "tokens", for messages.
absl::string_view ToString(SampleType type);
// Returns "classes", "values", "tokens" or "class probabilities", for messages.
absl::string_view ToString(TargetKind type);

// The description of a data set, known without its samples.
struct DatasetInfo {
  Shape shape;          // Of a sample: [channels, height, width], [features] or [length].
  int64_t classes = 0;  // Labels are 0 .. classes - 1. For tokens, the vocabulary. 0 if targets are values.
  int64_t train_samples = 0;       // After DatasetSpec.train_limit.
  int64_t validation_samples = 0;  // After DatasetSpec.validation_limit. 0 without validation.
  int64_t memory_bytes = 0;        // Host memory of the opened data set, shared by all replicas.
  SampleType sample_type = SampleType::kBytes;
  TargetKind target_type = TargetKind::kClass;
  Shape target_shape = Shape();  // Of a sample's target: [] for a class, [extents...], [length].
  bool mixes_classes = false;    // Training batches have class probabilities although target_type is a class.
  // For bytes and floats. If it is computed from the data, only OpenDataset returns its numbers.
  // DescribeDataset returns placeholders of the right size.
  ResolvedNormalization normalization = {};
  std::vector<std::string> class_names = {};  // As many as classes, or empty.
  // If the classes are matched to a model's: the model's label of each class, in the order in which settings
  // such as class_weights count classes. The data's classes come first, in their own order, then the model's
  // other classes. Two classes of the data with one name have the same label. Empty if settings count labels.
  std::vector<int32_t> class_labels = {};
  // Labels follow from the names, as for folders: other names would mean other labels.
  bool labels_follow_names = false;
  // Names of a table's columns, in the order of the sample's and the target's numbers. Empty if the table
  // does not name them.
  std::vector<std::string> feature_names = {};
  std::vector<std::string> target_names = {};
  // The number of columns of the table, the positions of its features, and the form of its file.
  int64_t table_columns = 0;
  std::vector<int64_t> feature_positions = {};
  std::optional<v1::TableFormat> table_format = {};
  // How a table's rows were prepared, if they were. Only OpenDataset returns its numbers. DescribeDataset
  // returns placeholders of the right sizes.
  std::optional<v1::TablePreparation> preparation = {};
  // The columns of categories of a prepared table, in the order of their inputs, without a dimension.
  std::vector<v1::EmbeddedColumn> category_columns = {};
  // All training samples have the same class, if the source knows this without its samples.
  bool one_label = false;
  // A negative number that targets hold in place of a class or token. The loss must ignore it.
  std::optional<int32_t> ignored_label = {};
  // Whether samples stay in their files and are decoded for each batch, as samples in shards are.
  bool stays_in_files = false;
  // For samples in shards: the number of training samples up to the end of each shard, ascending, and the
  // samples of the shuffling buffer. Only OpenDataset returns them. Empty for other samples.
  std::vector<int64_t> shard_ends = {};
  int64_t shuffle_buffer = 0;
  // For samples in shards: the SHA-256 of the labels, positions and lengths of all pictures, in hexadecimal
  // digits. Only OpenDataset returns it. Empty for other samples.
  std::string samples_sha256 = {};
  // For data with a single class: the likely mistake, and how to mend it.
  std::string one_class_mend = {};
  // Sentences for people about unexpected properties.
  std::vector<std::string> notices = {};

  // Return the type of targets in training batches, and the shape of a single target.
  TargetKind train_target_type() const {
    return mixes_classes ? TargetKind::kClassProbabilities : target_type;
  }
  Shape train_target_shape() const { return mixes_classes ? Shape({classes}) : target_shape; }
};

// Samples and their targets, by index. DatasetInfo has their types and shapes. Immutable after opening, so
// thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  // Return the bytes of a sample and of a target.
  virtual int64_t sample_bytes() const = 0;
  virtual int64_t target_bytes() const = 0;
  // Writes the samples with `indices`, each below size(), to `samples`, one after the other, dense and
  // row-major. Writes their targets to `targets`. Both have room for indices.size() entries and are aligned
  // for their types. INVALID_ARGUMENT, with the path: samples that stay in their files cannot be read.
  virtual absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const = 0;
  // As Gather, for epoch `epoch`, from 1. Augmented training samples differ in each epoch.
  virtual absl::Status GatherEpoch(int64_t /*epoch*/, absl::Span<const uint32_t> indices, void* samples,
                                   void* targets) const {
    return Gather(indices, samples, targets);
  }
  // As Gather, for the targets alone. By default, gathers the samples too.
  virtual absl::Status GatherTargets(absl::Span<const uint32_t> indices, void* targets) const;
};

// The two splits of a data set.
struct OpenedDataset {
  DatasetInfo info;
  std::unique_ptr<const Dataset> train;
  std::unique_ptr<const Dataset> validation;  // Null without validation.
};

// Reads what is needed to describe a data set: headers and labels of images and arrays, whole tables and
// texts. Checks that image files are as long as their headers say. `spec` has its source, with paths that can
// be opened unchanged.
//
// INVALID_ARGUMENT with the wrong fields relative to the spec ("idx.train_images"). A file may be missing,
// truncated, not of its format, of another type or rank, or larger than kMaxDatasetBytes. Counts may differ
// between files, a label may be outside the classes, or a number of the spec may be wrong. RESOURCE_EXHAUSTED
// if there is not enough memory.
//
// If `model` is given, columns, classes and characters are matched to the model's by name. Samples, targets
// and labels then have the model's form. Names that the model does not know, and missing columns, are also
// INVALID_ARGUMENT.
absl::StatusOr<DatasetInfo> DescribeDataset(const v1::DatasetSpec& spec, const DataNames* model = nullptr);

// Returns the part of `spec` that decides what DescribeDataset reads: the source, class_names, and, if the
// source makes the validation split itself (tables, texts), validation_split.
v1::DatasetSpec SourceAlone(const v1::DatasetSpec& spec);
// Returns DescribeDataset(spec), given `source` = DescribeDataset(SourceAlone(spec)), which may be an error.
// Reads no file.
absl::StatusOr<DatasetInfo> DescribeFromSource(const v1::DatasetSpec& spec,
                                               const absl::StatusOr<DatasetInfo>& source);

// As DescribeDataset, and opens the data for reading. Samples of files are held in memory, except samples in
// shards. Training samples are unchanged. Augment (augment/augmenter.h) makes an epoch's samples from them.
absl::StatusOr<OpenedDataset> OpenDataset(const v1::DatasetSpec& spec, const DataNames* model = nullptr);

// Returns an error of a job's data as DATA_LOSS, the code of such errors in training. RESOURCE_EXHAUSTED
// keeps its code: the memory was full, and the data may be right. OK is returned unchanged.
absl::Status DataError(const absl::Status& status);

// Takes `count` samples, as Dataset::Gather writes them, and their classes. `first` is the number of the
// first sample, from 0. `samples` is null for tokens. `classes` is null if targets are no classes.
using UseSamples =
    absl::FunctionRef<void(int64_t first, int64_t count, const void* samples, const int32_t* classes)>;

// Passes all training samples of OpenDataset(spec) to `use`, in pieces of at least a sample, in any order of
// pieces. The memory does not grow with the number of samples, except for a few bytes each. Never calls `use`
// if both samples and targets are tokens. Errors as OpenDataset.
absl::Status StreamTraining(const v1::DatasetSpec& spec, UseSamples use);

// The largest file of samples that is read, in decompressed bytes.
inline constexpr int64_t kMaxDatasetBytes = int64_t{8} << 30;
// The largest number of samples in a split.
inline constexpr int64_t kMaxSamples = int64_t{1} << 28;
// The largest number of classes or vocabulary tokens is this, plus the number of targets in the larger split.
// More classes would cost memory without use.
inline constexpr int64_t kMaxClassesAnyway = int64_t{1} << 18;

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_DATASET_H_
