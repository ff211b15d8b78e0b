#include "server/admission/read_dataset.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/memory_error.h"
#include "engine/base/status_macros.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/csv_report.h"
#include "engine/data/statistics.h"
#include "server/admission/data_facts.h"

namespace tandem {
namespace {

using internal::v1::DataFacts;
using internal::v1::DataTask;

std::optional<DataNames> NamesOf(const DataTask& task) {
  if (!task.has_names()) return std::nullopt;
  const internal::v1::ModelNames& names = task.names();
  return DataNames{
      .features = {names.features().begin(), names.features().end()},
      .targets = {names.targets().begin(), names.targets().end()},
      .classes = {names.classes().begin(), names.classes().end()},
      .matches_inputs = names.matches_inputs(),
      .matches_outputs = names.matches_outputs(),
      .takes_other_outputs = names.takes_other_outputs(),
      .preparation = names.has_preparation() ? std::optional(names.preparation()) : std::nullopt};
}

// Returns the number of entries to report.
size_t Told(size_t entries) { return std::min(entries, kMostDataEntries); }

absl::StatusOr<DataFacts> Count(const v1::DatasetSpec& spec, const DataNames* names) {
  TANDEM_ASSIGN_OR_RETURN(const DatasetInfo info, DescribeDataset(spec, names));
  TANDEM_ASSIGN_OR_RETURN(const TrainingCounts counts, CountTraining(spec, info));
  DataFacts facts = FactsOf(info);
  const ChannelStatistics& statistics = counts.statistics;
  const double scale = info.sample_type == SampleType::kBytes ? 1.0 / 255 : 1.0;
  v1::Dataset* const dataset = facts.mutable_dataset();
  for (size_t i = 0; i < Told(statistics.mean.size()); ++i) {
    dataset->add_mean(statistics.mean[i] * scale);
    dataset->add_standard_deviation(statistics.standard_deviation[i] * scale);
  }
  for (size_t i = 0; i < Told(counts.classes.size()); ++i) dataset->add_class_counts(counts.classes[i]);
  if (!info.table_format.has_value()) return facts;
  *dataset->mutable_table_format() = *info.table_format;
  TANDEM_ASSIGN_OR_RETURN(const CsvReport report, ReportCsv(spec, info));
  if (dataset->table_format().encoding() == v1::TEXT_ENCODING_UTF8 && !report.is_utf8) {
    dataset->mutable_table_format()->set_encoding(v1::TEXT_ENCODING_LATIN1);
  }
  if (!report.has_quotes) dataset->mutable_table_format()->clear_quote();
  dataset->mutable_columns()->Add(report.columns.begin(), report.columns.end());
  return facts;
}

absl::StatusOr<DataFacts> Describe(const v1::DatasetSpec& spec, const DataNames* names) {
  TANDEM_ASSIGN_OR_RETURN(const DatasetInfo info, DescribeDataset(spec, names));
  return FactsOf(info);
}

}  // namespace

absl::StatusOr<DataFacts> LocalDatasetReader::Read(const DataTask& task) {
  const std::optional<DataNames> names = NamesOf(task);
  DataFacts facts;
  TANDEM_RETURN_IF_ERROR(CatchNoMemory([&]() -> absl::Status {
    const auto read = task.counts() ? Count : Describe;
    TANDEM_ASSIGN_OR_RETURN(facts, read(task.dataset(), names.has_value() ? &*names : nullptr));
    return absl::OkStatus();
  }));
  return facts;
}

}  // namespace tandem
