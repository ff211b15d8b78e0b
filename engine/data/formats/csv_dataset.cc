#include "engine/data/formats/csv_dataset.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/csv_description.h"
#include "engine/data/formats/csv_row_reader.h"
#include "engine/data/formats/csv_table.h"
#include "engine/data/formats/csv_targets.h"
#include "engine/data/memory_dataset.h"
#include "engine/data/table/table_fit.h"

namespace tandem {
namespace {

// The bytes of samples that are passed at once.
constexpr size_t kStreamedBytes = size_t{1} << 20;

absl::Status Changed(const CsvTable& table) {
  return absl::InvalidArgumentError(absl::StrCat(table.path, " changed while it was read"));
}

// Takes a row of a table. `is_validation`: the split gives the row to validation.
using UseRow = absl::FunctionRef<absl::Status(
    const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields, bool is_validation)>;

// Reads a table again, with the split `split` if it is not empty.
absl::Status ReadAgain(const v1::CsvSource& source, const CsvTable& known, const std::vector<bool>& split,
                       UseRow use) {
  size_t next = 0;
  TANDEM_ASSIGN_OR_RETURN(
      const CsvTable table,
      ReadCsvTableLike(source, known.path, known,
                       [&](const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields) {
                         if (!split.empty() && next == split.size()) return Changed(table);
                         return use(table, row, fields, !split.empty() && split[next++]);
                       }));
  return table.rows == known.rows ? absl::OkStatus() : Changed(table);
}

// Computes the preparation from the training samples, at most `limit` of them unless that is 0.
absl::Status FitTable(const v1::CsvSource& source, int64_t limit, CsvDescription& description) {
  if (!description.info.preparation.has_value()) return absl::OkStatus();
  if (description.columns.plans.empty() && !description.scales_target) return absl::OkStatus();
  v1::TablePreparation& preparation = *description.info.preparation;
  std::vector<ColumnFit> fits;
  // Growing vectors would take up to three times the memory.
  const int64_t rows =
      limit > 0 ? std::min(limit, description.info.train_samples) : description.info.train_samples;
  for (const ColumnPlan& plan : description.columns.plans) fits.emplace_back(plan, description.train.rules);
  for (ColumnFit& fit : fits) fit.Reserve(rows);
  std::vector<double> targets;
  if (description.scales_target) targets.reserve(rows);
  int64_t taken = 0;
  TANDEM_RETURN_IF_ERROR(ReadAgain(
      source, description.train, description.split,
      [&](const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields,
          bool is_validation) {
        if (is_validation || (limit > 0 && taken == limit)) {
          return absl::OkStatus();
        }
        ++taken;
        for (size_t i = 0; i < fits.size(); ++i) {
          fits[i].Add(fields[table.features[i]]);
        }
        if (!description.scales_target) return absl::OkStatus();
        const size_t target = table.targets[0];
        TANDEM_ASSIGN_OR_RETURN(targets.emplace_back(), CsvNumber(table, row, target, fields[target], ""));
        return absl::OkStatus();
      }));
  for (size_t i = 0; i < fits.size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(*preparation.mutable_columns(static_cast<int>(i)), fits[i].Finish());
  }
  if (!description.scales_target) return absl::OkStatus();
  const Scale scale = ScaleOf(targets);
  preparation.set_target_mean(scale.mean);
  preparation.set_target_deviation(scale.deviation);
  return absl::OkStatus();
}

// The samples of a split.
struct CsvPart {
  std::vector<uint8_t> samples;
  std::vector<uint8_t> targets;

  void Reserve(const DatasetInfo& info, int64_t count) {
    samples.reserve(count * info.shape.elements() * sizeof(float));
    targets.reserve(count * info.target_shape.elements() * sizeof(float));
  }
  std::unique_ptr<const Dataset> Take(const DatasetInfo& info) {
    return std::make_unique<MemoryDataset>(
        info.shape.elements() * static_cast<int64_t>(sizeof(float)), std::move(samples),
        info.target_shape.elements() * static_cast<int64_t>(sizeof(float)), std::move(targets));
  }
};

// Reads a table again. Appends each row to its part, then calls `next`.
absl::Status ReadRows(const v1::CsvSource& source, const CsvTable& known, const std::vector<bool>& split,
                      const DatasetInfo& info, CsvPart* train, CsvPart* validation,
                      absl::FunctionRef<void()> next) {
  const TargetReader reader(info);
  const CsvRowReader row_reader(source, known, info.preparation);
  std::vector<float> inputs;
  return ReadAgain(
      source, known, split,
      [&](const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields,
          bool is_validation) {
        CsvPart* const part = is_validation ? validation : train;
        if (part == nullptr) return absl::OkStatus();
        TANDEM_RETURN_IF_ERROR(row_reader.Read(table, row, fields, &inputs));
        const auto* begin = reinterpret_cast<const uint8_t*>(inputs.data());
        part->samples.insert(part->samples.end(), begin, begin + inputs.size() * sizeof(float));
        for (const size_t column : table.targets) {
          TANDEM_RETURN_IF_ERROR(reader.Read(table, row, column, fields[column], &part->targets));
        }
        next();
        return absl::OkStatus();
      });
}

}  // namespace

absl::Status StreamCsv(const v1::DatasetSpec& spec, UseSamples use) {
  const v1::CsvSource& source = spec.csv();
  // The model's names would only change the order.
  const DataNames none = {.matches_inputs = false, .matches_outputs = false};
  TANDEM_ASSIGN_OR_RETURN(CsvDescription description, ReadCsvDescription(spec, none));
  TANDEM_RETURN_IF_ERROR(CsvErrorOf("csv.train", FitTable(source, spec.train_limit(), description)));
  const bool has_classes = description.info.target_type == TargetKind::kClass;
  CsvPart part;
  int64_t first = 0, count = 0;
  const auto give = [&] {
    if (count == 0) return;
    use(first, count, part.samples.data(),
        has_classes ? reinterpret_cast<const int32_t*>(part.targets.data()) : nullptr);
    part.samples.clear();
    part.targets.clear();
    first += count;
    count = 0;
  };
  TANDEM_RETURN_IF_ERROR(CsvErrorOf("csv.train", ReadRows(source, description.train, description.split,
                                                          description.info, &part, nullptr, [&] {
                                                            ++count;
                                                            if (part.samples.size() >= kStreamedBytes) give();
                                                          })));
  give();
  return absl::OkStatus();
}

absl::StatusOr<DatasetInfo> DescribeCsv(const v1::DatasetSpec& spec, const DataNames& model) {
  TANDEM_ASSIGN_OR_RETURN(CsvDescription description, ReadCsvDescription(spec, model));
  return std::move(description.info);
}

absl::StatusOr<OpenedDataset> OpenCsv(const v1::DatasetSpec& spec, const DataNames& model) {
  const v1::CsvSource& source = spec.csv();
  TANDEM_ASSIGN_OR_RETURN(CsvDescription description, ReadCsvDescription(spec, model));
  TANDEM_RETURN_IF_ERROR(CsvErrorOf("csv.train", FitTable(source, spec.train_limit(), description)));
  const DatasetInfo& info = description.info;
  OpenedDataset opened;
  CsvPart train, validation;
  train.Reserve(info, info.train_samples);
  validation.Reserve(info, info.validation_samples);
  TANDEM_RETURN_IF_ERROR(CsvErrorOf(
      "csv.train", ReadRows(source, description.train, description.split, info, &train, &validation, [] {})));
  if (!source.validation().empty()) {
    TANDEM_RETURN_IF_ERROR(CsvErrorOf(
        "csv.validation", ReadRows(source, description.validation, {}, info, &validation, nullptr, [] {})));
  }
  opened.train = train.Take(info);
  if (info.validation_samples > 0) opened.validation = validation.Take(info);
  opened.info = std::move(description.info);
  return opened;
}

}  // namespace tandem
