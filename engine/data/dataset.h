#ifndef TANDEM_ENGINE_DATA_DATASET_H_
#define TANDEM_ENGINE_DATA_DATASET_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// What a data set holds, known without its samples.
struct DatasetInfo {
  Shape shape;                     // Of one sample: [channels, height, width] or [features].
  int64_t classes = 0;             // Labels are 0 .. classes - 1.
  int64_t train_samples = 0;       // After DatasetSpec.train_limit.
  int64_t validation_samples = 0;  // After DatasetSpec.validation_limit; 0 where there is no validation.
  int64_t memory_bytes = 0;  // What it takes of the host's memory once opened, by all replicas together.
};

// Labelled samples of unsigned bytes, by index. Thread-safe: immutable once opened.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  // Of one sample.
  virtual const Shape& shape() const = 0;
  // Writes the samples with `indices`, each below size(), one after the other: their bytes, dense and
  // row-major, to `images`, which has room for indices.size() samples, and their classes to `labels`.
  virtual void Gather(absl::Span<const uint32_t> indices, uint8_t* images, int32_t* labels) const = 0;
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
absl::StatusOr<DatasetInfo> DescribeDataset(const v1::DatasetSpec& spec);

// As DescribeDataset, and opens it for reading; samples of files are held in memory.
absl::StatusOr<OpenedDataset> OpenDataset(const v1::DatasetSpec& spec);

// The largest file of samples that is read, decompressed.
inline constexpr int64_t kMaxDatasetBytes = int64_t{8} << 30;
// The most samples in a split.
inline constexpr int64_t kMaxSamples = int64_t{1} << 28;

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_DATASET_H_
