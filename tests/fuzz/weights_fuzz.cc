// Files of weights from which a job starts: the tensors, the names of columns, and the preparation of a
// table. A table with names and a table without names are read for the model.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/data/table/table_encoder.h"
#include "engine/training/initial_weights.h"
#include "engine/training/layer_selection.h"
#include "engine/training/model_file.h"
#include "engine/training/plan.h"
#include "engine/training/trained_model.h"
#include "google/protobuf/text_format.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"

namespace tandem {
namespace {

constexpr char kJob[] = R"(
  model { input { shape: 9 } layers { dense { units: 2 } } layers { batch_norm {} } }
  training { loss { mse {} } optimizer { sgd { learning_rate: 0.1 } } global_batch_size: 1 epochs: 1 }
)";
constexpr char kPreparation[] = R"(
  target_mean: 3 target_deviation: 2
  columns {
    name: "age" kind: COLUMN_KIND_NUMBER missing_indicator: true
    numbers { fill: 30 mean: 20 deviation: 10 quantiles: [1, 20, 20, 50] }
  }
  columns { name: "day" kind: COLUMN_KIND_DATE numbers { deviation: 1 } numbers { deviation: 1 }
            numbers { deviation: 1 } numbers { deviation: 1 } }
  columns { name: "port" kind: COLUMN_KIND_CATEGORY categories: ["C", "S"] category_inputs: 2 }
)";
// Rows with more inputs would take the time of many small rows.
constexpr int64_t kMostInputs = 1 << 16;

[[noreturn]] void Wrong(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

v1::JobSpec JobFrom(const std::string& path) {
  v1::JobSpec spec;
  if (!google::protobuf::TextFormat::ParseFromString(kJob, &spec)) std::abort();
  spec.mutable_initial_weights()->set_file(path);
  FillDefaults(&spec);
  return spec;
}

// Returns a job's model file with tensors of this type.
std::string ModelFile(DType type) {
  const std::string path = InputFolder() + "/seed.safetensors";
  const v1::JobSpec spec = JobFrom(path);
  const absl::StatusOr<LayerTable> table = ListLayers(spec.model());
  if (!table.ok()) Wrong(table.status().ToString());
  std::vector<NamedTensor> tensors;
  for (const Parameter& parameter : table->parameters)
    tensors.emplace_back(parameter.name, Tensor(type, parameter.shape));
  for (const Statistic& statistic : table->statistics)
    tensors.emplace_back(statistic.name, Tensor(type, statistic.shape));
  TrainedOn trained_on{
      .sample_type = SampleType::kFloats, .normalization = {}, .class_names = {"cat", "dog"}};
  trained_on.feature_names = {"age", "day", "port"};
  if (!google::protobuf::TextFormat::ParseFromString(kPreparation, &trained_on.preparation.emplace())) {
    std::abort();
  }
  const absl::Status written = WriteModel(Env::Real(), path, spec, tensors, trained_on);
  if (!written.ok()) Wrong(written.ToString());
  return Env::Real()->ReadFile(path).value();
}

void CheckTensors(const v1::JobSpec& spec, const std::string& path) {
  const absl::Status fits = CheckWeightsFile(spec, path);
  const absl::StatusOr<std::map<std::string, Tensor>> read = ReadInitialWeights(spec, path);
  if (fits.ok() != read.ok()) Wrong(absl::StrCat(fits.ToString(), " and ", read.status().ToString()));
  if (!read.ok()) return;
  const auto wanted = WantedTensors(spec);
  if (!wanted.ok() || read->size() != wanted->size()) Wrong("some wanted tensors are missing");
  for (const auto& [name, tensor] : *read) {
    if (!wanted->contains(name) || tensor.dtype() != DType::kFloat32) Wrong(name);
  }
}

// Checks that cells become as many finite inputs as the preparation promises.
void CheckEncoder(const v1::TablePreparation& preparation) {
  const TableEncoder encoder(preparation);
  for (size_t column = 0; column < encoder.columns(); ++column) {
    const auto wanted =
        static_cast<size_t>(InputsOf(encoder.preparation().columns(static_cast<int>(column))));
    for (const absl::string_view cell : {"", "-1,5", "20", "3e38", "2024-05-31 12:30", "S", "\xff"}) {
      std::vector<float> inputs;
      const absl::Status encoded = encoder.Encode(column, cell, &inputs);
      if (!encoded.ok()) {
        if (!absl::IsInvalidArgument(encoded)) Wrong(encoded.ToString());
        continue;
      }
      if (inputs.size() != wanted) Wrong(absl::StrCat(inputs.size(), " inputs in place of ", wanted));
      for (const float input : inputs) {
        if (!std::isfinite(input)) Wrong(absl::StrCat("the input ", input));
      }
    }
  }
}

// Reads tables for a model with these names.
void ReadTables(const DataNames& names) {
  static const std::string* const named = new std::string(
      WriteInput("named.csv", "day,kind,age,port,y\n2024-05-31,cat,20,S,1\n2024-06-01,dog,,Q,2\n"));
  static const std::string* const unnamed =
      new std::string(WriteInput("unnamed.csv", "20,2024-05-31,S,1\n,2024-06-01,Q,2\n"));
  for (const std::string* path : {named, unnamed}) {
    v1::DatasetSpec spec;
    spec.mutable_csv()->set_train(*path);
    spec.mutable_csv()->set_header(path == named);
    const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec, &names);
    if (!opened.ok() && !absl::IsInvalidArgument(opened.status())) Wrong(opened.status().ToString());
  }
}

}  // namespace

std::vector<std::string> Seeds() {
  return {ModelFile(DType::kFloat32), ModelFile(DType::kFloat16), ModelFile(DType::kBFloat16),
          ModelFile(DType::kFloat64)};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem;  // NOLINT: a target is the program.
  const std::string path =
      WriteInput("weights.safetensors", absl::string_view(reinterpret_cast<const char*>(data), size));
  static const v1::JobSpec* const spec = new v1::JobSpec(JobFrom(path));
  CheckTensors(*spec, path);
  const absl::StatusOr<std::optional<v1::TablePreparation>> preparation = PreparationInWeights(path);
  const bool is_prepared = preparation.ok() && preparation->has_value();
  if (is_prepared && TableEncoder(**preparation).inputs() > kMostInputs) return 0;
  if (is_prepared) CheckEncoder(**preparation);
  const absl::StatusOr<DataNames> names = NamesOfInitialWeights(*spec, path);
  if (names.ok()) ReadTables(*names);
  return 0;
}
