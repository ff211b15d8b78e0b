#ifndef TANDEM_ENGINE_TRAINING_MODEL_FILE_H_
#define TANDEM_ENGINE_TRAINING_MODEL_FILE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/env.h"
#include "engine/base/random_access_env.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/data/normalization.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"
#include "tandem/v1/table.pb.h"

namespace tandem {

// The part of a model file that describes its training samples, so that other samples can be prepared alike.
// Its metadata has:
// "samples": "bytes", "floats" or "tokens"
// "normalization": a v1::Normalization as JSON
// "class_names", "feature_names", "target_names": lists as JSON
// "image_resize": the name of a v1::ImageResize
// "array_layout": the name of a v1::ArrayLayout
// "delimiter", "table_columns", "feature_positions": of a table; positions are separated by commas
// "table_preparation": a v1::TablePreparation as JSON, if the rows of the table were prepared
struct TrainedOn {
  // The format of the training table.
  struct Table {
    char delimiter = ',';
    int64_t columns = 0;
    std::vector<int64_t> feature_positions = {};  // From 0, in the order of the sample's numbers.
  };

  SampleType sample_type = SampleType::kBytes;
  ResolvedNormalization normalization;
  std::vector<std::string> class_names;  // In the order of the labels. May be empty.
  // Names of a table's columns, in the order of the sample's numbers. May be empty.
  std::vector<std::string> feature_names = {};
  // Names in the order of the target's numbers. May be empty.
  std::vector<std::string> target_names = {};
  std::optional<v1::ImageResize> resize = std::nullopt;  // Set if images were resized to a common size.
  std::optional<v1::ArrayLayout> layout = std::nullopt;  // Set if the samples were images in arrays.
  std::optional<Table> table = std::nullopt;
  // How raw rows become samples. Unset if rows are numbers that are used as they are.
  std::optional<v1::TablePreparation> preparation = std::nullopt;
};

// Returns the names by which other data are matched to the model.
DataNames NamesOf(const TrainedOn& trained_on);

// Returns the way in which a data set resizes images, or nothing. `dataset` has its source.
std::optional<v1::ImageResize> ResizeOf(const v1::DatasetSpec& dataset);

// Returns the layout of a data set's arrays, or nothing if it gives none. `dataset` has its source.
std::optional<v1::ArrayLayout> LayoutOf(const v1::DatasetSpec& dataset);

// Returns the metadata of a model file. They hold the job, `trained_on` and, for a model with a best result,
// "best_result", a v1::BestResult as JSON. `spec` has its defaults, and its data set as submitted, so that
// the file does not name the place of the data on this machine.
absl::StatusOr<std::map<std::string, std::string>> ModelMetadata(
    const v1::JobSpec& spec, const TrainedOn& trained_on,
    const std::optional<v1::BestResult>& best = std::nullopt);

// Writes a model with the metadata of ModelMetadata as safetensors, atomically: temporary file, fsync,
// rename.
absl::Status WriteModel(Env* env, const std::string& path, const v1::JobSpec& spec,
                        absl::Span<const NamedTensor> tensors, const TrainedOn& trained_on,
                        const std::optional<v1::BestResult>& best = std::nullopt);

// Returns whether the model file with this metadata was kept for this result.
bool IsModelOf(const std::map<std::string, std::string>& metadata, const v1::BestResult& best);

// Returns the result for which the model file was kept. Reads the header alone. DATA_LOSS if the file is no
// whole safetensors file, or has no such result.
absl::StatusOr<v1::BestResult> ReadBestResult(const RandomAccessFile& file);

// Returns all names in the metadata by which the model knows its data. Matches nothing if the file is not of
// a job's model.
absl::StatusOr<DataNames> NamesInModel(const std::map<std::string, std::string>& metadata);

// Returns the job in the metadata, as it was trained: class_weights and ignore_index of its loss are in the
// order of the labels. DATA_LOSS if it cannot be read.
absl::StatusOr<v1::JobSpec> JobIn(const std::map<std::string, std::string>& metadata);

// Returns how the samples of a job's model file were normalized. Nothing if the metadata do not tell.
std::optional<v1::Normalization> NormalizationIn(const std::map<std::string, std::string>& metadata);

// Reads the metadata of a job's model file. `sample` is the shape of the model's samples. DATA_LOSS if they
// cannot be read.
absl::StatusOr<TrainedOn> ReadTrainedOn(const std::map<std::string, std::string>& metadata,
                                        const Shape& sample);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_MODEL_FILE_H_
