#include "engine/training/model_file.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/base/file_pieces.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/safetensors_layout.h"
#include "engine/data/table/table_encoder.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"

namespace tandem {
namespace {

constexpr char kFramework[] = "tandem";
constexpr char kFormatVersion[] = "1";
constexpr char kSamples[] = "samples";
constexpr char kNormalization[] = "normalization";
constexpr char kClassNames[] = "class_names";
constexpr char kFeatureNames[] = "feature_names";
constexpr char kTargetNames[] = "target_names";
constexpr char kDelimiter[] = "delimiter";
constexpr char kTableColumns[] = "table_columns";
constexpr char kFeaturePositions[] = "feature_positions";
constexpr char kTablePreparation[] = "table_preparation";
constexpr char kImageResize[] = "image_resize";
constexpr char kArrayLayout[] = "array_layout";
constexpr char kBestResult[] = "best_result";
constexpr std::pair<SampleType, const char*> kSampleTypes[] = {
    {SampleType::kBytes, "bytes"}, {SampleType::kFloats, "floats"}, {SampleType::kTokens, "tokens"}};

absl::Status AddJson(const char* key, const google::protobuf::Message& message,
                     std::map<std::string, std::string>& metadata) {
  google::protobuf::util::JsonPrintOptions json;
  json.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(message, &text, json).ok()) {
    return absl::InternalError(absl::StrCat("a model's ", key, " cannot be written as JSON"));
  }
  metadata[key] = std::move(text);
  return absl::OkStatus();
}

std::optional<v1::BestResult> BestResultIn(const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find(kBestResult);
  v1::BestResult best;
  if (found == metadata.end() || !google::protobuf::util::JsonStringToMessage(found->second, &best).ok()) {
    return std::nullopt;
  }
  return best;
}

absl::Status AddNames(const char* key, const std::vector<std::string>& names,
                      std::map<std::string, std::string>& metadata) {
  if (names.empty()) return absl::OkStatus();
  google::protobuf::ListValue list;
  for (const std::string& name : names) list.add_values()->set_string_value(name);
  return AddJson(key, list, metadata);
}

// Returns the format of the training table, or nothing if the metadata do not have it.
absl::StatusOr<std::optional<TrainedOn::Table>> TableIn(const std::map<std::string, std::string>& metadata) {
  const auto delimiter = metadata.find(kDelimiter);
  if (delimiter == metadata.end()) return std::optional<TrainedOn::Table>();
  TrainedOn::Table table;
  const absl::Status damaged = absl::DataLossError("its table cannot be read");
  if (delimiter->second.size() != 1) return damaged;
  table.delimiter = delimiter->second[0];
  const auto columns = metadata.find(kTableColumns), positions = metadata.find(kFeaturePositions);
  if (columns == metadata.end() || positions == metadata.end()) return damaged;
  if (!absl::SimpleAtoi(columns->second, &table.columns)) return damaged;
  for (const absl::string_view text : absl::StrSplit(positions->second, ',', absl::SkipEmpty())) {
    int64_t position = 0;
    if (!absl::SimpleAtoi(text, &position) || position < 0 || position >= table.columns) return damaged;
    table.feature_positions.push_back(position);
  }
  return std::optional<TrainedOn::Table>(std::move(table));
}

// Returns the preparation of a table's rows, or nothing if the metadata do not have it.
absl::StatusOr<std::optional<v1::TablePreparation>> PreparationIn(
    const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find(kTablePreparation);
  if (found == metadata.end()) return std::optional<v1::TablePreparation>();
  v1::TablePreparation preparation;
  if (!google::protobuf::util::JsonStringToMessage(found->second, &preparation).ok()) {
    return absl::DataLossError("its preparation of a table cannot be read");
  }
  if (const absl::Status status = CheckPreparation(preparation); !status.ok()) {
    return absl::DataLossError(status.message());
  }
  return std::optional<v1::TablePreparation>(std::move(preparation));
}

// Returns the names, or nothing if the metadata do not have `key`. `what` is for errors.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::map<std::string, std::string>& metadata,
                                                 const char* key, absl::string_view what) {
  std::vector<std::string> names;
  const auto found = metadata.find(key);
  if (found == metadata.end()) return names;
  google::protobuf::ListValue list;
  if (!google::protobuf::util::JsonStringToMessage(found->second, &list).ok()) {
    return absl::DataLossError(absl::StrCat("its names of ", what, " cannot be read"));
  }
  for (const google::protobuf::Value& name : list.values()) names.push_back(name.string_value());
  return names;
}

}  // namespace

DataNames NamesOf(const TrainedOn& trained_on) {
  return {.features = trained_on.feature_names,
          .targets = trained_on.target_names,
          .classes = trained_on.class_names,
          .preparation = trained_on.preparation};
}

std::optional<v1::ImageResize> ResizeOf(const v1::DatasetSpec& dataset) {
  if (dataset.webdataset().height() != 0) return dataset.webdataset().resize();
  if (dataset.image_folder().height() == 0) return std::nullopt;
  return dataset.image_folder().resize();
}

std::optional<v1::ArrayLayout> LayoutOf(const v1::DatasetSpec& dataset) {
  if (dataset.npy().layout() == v1::ARRAY_LAYOUT_UNSPECIFIED) return std::nullopt;
  return dataset.npy().layout();
}

absl::StatusOr<std::map<std::string, std::string>> ModelMetadata(const v1::JobSpec& spec,
                                                                 const TrainedOn& trained_on,
                                                                 const std::optional<v1::BestResult>& best) {
  std::map<std::string, std::string> metadata = {{"framework", kFramework},
                                                 {"format_version", kFormatVersion}};
  TANDEM_RETURN_IF_ERROR(AddJson("job", spec, metadata));
  for (const auto& [type, name] : kSampleTypes) {
    if (type == trained_on.sample_type) metadata[kSamples] = name;
  }
  v1::Normalization normalization;
  normalization.set_scale(trained_on.normalization.scale);
  for (const double mean : trained_on.normalization.mean) normalization.add_mean(mean);
  for (const double deviation : trained_on.normalization.standard_deviation) {
    normalization.add_standard_deviation(deviation);
  }
  TANDEM_RETURN_IF_ERROR(AddJson(kNormalization, normalization, metadata));
  TANDEM_RETURN_IF_ERROR(AddNames(kClassNames, trained_on.class_names, metadata));
  TANDEM_RETURN_IF_ERROR(AddNames(kFeatureNames, trained_on.feature_names, metadata));
  TANDEM_RETURN_IF_ERROR(AddNames(kTargetNames, trained_on.target_names, metadata));
  if (trained_on.resize.has_value()) metadata[kImageResize] = v1::ImageResize_Name(*trained_on.resize);
  if (trained_on.layout.has_value()) metadata[kArrayLayout] = v1::ArrayLayout_Name(*trained_on.layout);
  if (trained_on.table.has_value()) {
    metadata[kDelimiter] = std::string(1, trained_on.table->delimiter);
    metadata[kTableColumns] = absl::StrCat(trained_on.table->columns);
    metadata[kFeaturePositions] = absl::StrJoin(trained_on.table->feature_positions, ",");
  }
  if (trained_on.preparation.has_value()) {
    TANDEM_RETURN_IF_ERROR(AddJson(kTablePreparation, *trained_on.preparation, metadata));
  }
  if (best.has_value()) TANDEM_RETURN_IF_ERROR(AddJson(kBestResult, *best, metadata));
  return metadata;
}

absl::Status WriteModel(Env* env, const std::string& path, const v1::JobSpec& spec,
                        absl::Span<const NamedTensor> tensors, const TrainedOn& trained_on,
                        const std::optional<v1::BestResult>& best) {
  TANDEM_ASSIGN_OR_RETURN(const auto metadata, ModelMetadata(spec, trained_on, best));
  return WriteSafetensors(env, path, tensors, metadata);
}

bool IsModelOf(const std::map<std::string, std::string>& metadata, const v1::BestResult& best) {
  const std::optional<v1::BestResult> read = BestResultIn(metadata);
  return read.has_value() && google::protobuf::util::MessageDifferencer::Equals(*read, best);
}

absl::StatusOr<v1::BestResult> ReadBestResult(const RandomAccessFile& file) {
  TANDEM_ASSIGN_OR_RETURN(const int64_t size, file.Size());
  std::string beginning;
  const auto take = [&](absl::string_view piece) {
    beginning.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  TANDEM_RETURN_IF_ERROR(ReadInPieces(file, 0, std::min(size, kSafetensorsLengthBytes), take));
  TANDEM_ASSIGN_OR_RETURN(const int64_t length, ParseSafetensorsLength(beginning, size));
  beginning.clear();
  const int64_t end = kSafetensorsLengthBytes + length;
  TANDEM_RETURN_IF_ERROR(ReadInPieces(file, kSafetensorsLengthBytes, end, take));
  TANDEM_ASSIGN_OR_RETURN(const SafetensorsLayout layout, ParseSafetensorsLayout(beginning, size - end));
  std::optional<v1::BestResult> best = BestResultIn(layout.metadata);
  if (!best.has_value()) return absl::DataLossError("the model has no best result");
  return *std::move(best);
}

absl::StatusOr<DataNames> NamesInModel(const std::map<std::string, std::string>& metadata) {
  DataNames names;
  const auto framework = metadata.find("framework");
  if (framework == metadata.end() || framework->second != kFramework || !metadata.contains(kSamples)) {
    names.matches_inputs = false;
    names.matches_outputs = false;
    return names;
  }
  TANDEM_ASSIGN_OR_RETURN(names.classes, NamesIn(metadata, kClassNames, "classes"));
  TANDEM_ASSIGN_OR_RETURN(names.features, NamesIn(metadata, kFeatureNames, "columns"));
  TANDEM_ASSIGN_OR_RETURN(names.targets, NamesIn(metadata, kTargetNames, "target columns"));
  TANDEM_ASSIGN_OR_RETURN(names.preparation, PreparationIn(metadata));
  return names;
}

absl::StatusOr<v1::JobSpec> JobIn(const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find("job");
  v1::JobSpec job;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  if (found == metadata.end() ||
      !google::protobuf::util::JsonStringToMessage(found->second, &job, options).ok()) {
    return absl::DataLossError("its job cannot be read");
  }
  return job;
}

std::optional<v1::Normalization> NormalizationIn(const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find(kNormalization);
  v1::Normalization normalization;
  if (found == metadata.end() ||
      !google::protobuf::util::JsonStringToMessage(found->second, &normalization).ok()) {
    return std::nullopt;
  }
  return normalization;
}

absl::StatusOr<TrainedOn> ReadTrainedOn(const std::map<std::string, std::string>& metadata,
                                        const Shape& sample) {
  TrainedOn trained_on;
  const auto samples = metadata.find(kSamples);
  const auto* const type =
      std::find_if(std::begin(kSampleTypes), std::end(kSampleTypes), [&](const auto& candidate) {
        return samples != metadata.end() && samples->second == candidate.second;
      });
  if (type == std::end(kSampleTypes)) return absl::DataLossError("its type of samples is not known");
  trained_on.sample_type = type->first;
  const std::optional<v1::Normalization> normalization = NormalizationIn(metadata);
  if (!normalization.has_value()) return absl::DataLossError("its normalization cannot be read");
  if (trained_on.sample_type != SampleType::kTokens) {
    absl::StatusOr<ResolvedNormalization> resolved =
        ResolveNormalization(*normalization, sample, DTypeOfSamples(trained_on.sample_type));
    if (!resolved.ok()) return absl::DataLossError(resolved.status().message());
    trained_on.normalization = *std::move(resolved);
  }
  TANDEM_ASSIGN_OR_RETURN(trained_on.class_names, NamesIn(metadata, kClassNames, "classes"));
  TANDEM_ASSIGN_OR_RETURN(trained_on.feature_names, NamesIn(metadata, kFeatureNames, "columns"));
  TANDEM_ASSIGN_OR_RETURN(trained_on.target_names, NamesIn(metadata, kTargetNames, "target columns"));
  TANDEM_ASSIGN_OR_RETURN(trained_on.table, TableIn(metadata));
  TANDEM_ASSIGN_OR_RETURN(trained_on.preparation, PreparationIn(metadata));
  if (const auto found = metadata.find(kImageResize); found != metadata.end()) {
    v1::ImageResize resize;
    if (!v1::ImageResize_Parse(found->second, &resize)) {
      return absl::DataLossError("its way to resize images is not known");
    }
    trained_on.resize = resize;
  }
  if (const auto found = metadata.find(kArrayLayout); found != metadata.end()) {
    v1::ArrayLayout layout;
    if (!v1::ArrayLayout_Parse(found->second, &layout)) {
      return absl::DataLossError("its layout of arrays is not known");
    }
    trained_on.layout = layout;
  }
  return trained_on;
}

}  // namespace tandem
