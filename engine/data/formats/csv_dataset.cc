#include "engine/data/formats/csv_dataset.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/csv_columns.h"
#include "engine/data/formats/csv_format.h"
#include "engine/data/formats/csv_split.h"
#include "engine/data/formats/csv_table.h"
#include "engine/data/formats/csv_targets.h"
#include "engine/data/memory_dataset.h"
#include "engine/data/table/column_profile.h"
#include "engine/data/table/table_encoder.h"
#include "engine/data/table/table_fit.h"
#include "engine/data/table/unknown_categories.h"

namespace tandem {
namespace {

// The bytes of samples that are passed at once.
constexpr size_t kStreamedBytes = size_t{1} << 20;

absl::StatusOr<double> Feature(const CsvTable& table, int64_t row, size_t column,
                               const std::vector<absl::string_view>& fields) {
  return CsvNumber(table, row, column, fields[column], ", or leave the column out of csv.feature_columns");
}

// Reads a row's features as inputs of the network.
class RowReader {
 public:
  // `preparation` is of the features of `table`, a table of `source`. Without a preparation, features are
  // numbers that are used as they are.
  RowReader(const v1::CsvSource& source, const CsvTable& table,
            const std::optional<v1::TablePreparation>& preparation) {
    std::optional<v1::TablePreparation> read = PreparationFor(source, table, preparation);
    if (read.has_value()) encoder_.emplace(*std::move(read));
  }

  const std::optional<TableEncoder>& encoder() const { return encoder_; }

  // Replaces `inputs` by the inputs of a row.
  absl::Status Read(const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields,
                    std::vector<float>* inputs) const {
    inputs->clear();
    for (size_t i = 0; i < table.features.size(); ++i) {
      const size_t column = table.features[i];
      if (!encoder_.has_value()) {
        TANDEM_ASSIGN_OR_RETURN(const double value, Feature(table, row, column, fields));
        inputs->push_back(static_cast<float>(value));
        continue;
      }
      const absl::Status status = encoder_->Encode(i, fields[column], inputs);
      if (status.ok()) continue;
      return absl::InvalidArgumentError(absl::StrCat(CsvPlace(table, row, column), " ", status.message()));
    }
    return absl::OkStatus();
  }

 private:
  std::optional<TableEncoder> encoder_;
};

struct Tables {
  DatasetInfo info;
  CsvTable train;
  CsvTable validation;
  // The plans of the training table's columns, unless a model has prepared columns already.
  CsvColumns columns;
  bool scales_target = false;  // The target's scale is to be fitted.
  // Whether each row of the training table belongs to validation. Empty without a split.
  std::vector<bool> split;
};

// Returns the data's own classes, which a model knows. Numbers count from 0, as without a model, if the model
// knows all of them up to the largest.
absl::StatusOr<std::vector<std::string>> OwnClasses(const DataNames& model, const TrainingTargets& targets,
                                                    const CsvTable& train) {
  const auto classes = static_cast<int64_t>(model.classes.size());
  if (targets.number_status().ok() && targets.classes() <= classes) {
    const absl::flat_hash_set<absl::string_view> known(model.classes.begin(), model.classes.end());
    std::vector<std::string> numbers;
    for (int64_t i = 0; i < targets.classes(); ++i) numbers.push_back(absl::StrCat(i));
    const auto is_known = [&](const std::string& name) { return known.contains(name); };
    if (std::all_of(numbers.begin(), numbers.end(), is_known)) return numbers;
  }
  absl::StatusOr<std::vector<std::string>> names = targets.Names(train);
  if (!names.ok()) return UnderField("csv.train", names.status());
  return names;
}

absl::Status SetClasses(const v1::CsvSource& source, const DataNames& model, const TrainingTargets& targets,
                        Tables& tables) {
  DatasetInfo& info = tables.info;
  FieldViolations violations;
  if (!model.classes.empty() && targets.known_status().ok()) {
    info.class_names = model.classes;
    info.classes = static_cast<int64_t>(model.classes.size());
    info.labels_follow_names = true;
    TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> own, OwnClasses(model, targets, tables.train));
    info.class_labels = ClassLabels(own, model.classes);
    return absl::OkStatus();
  }
  // The targets are labels of a model whose names came from elsewhere.
  const bool by_number = targets.number_status().ok() && !targets.knows_any();
  if (!model.classes.empty() && !by_number && !model.takes_other_outputs) {
    violations.Add("csv.train", absl::StrCat(targets.known_status().message(), "; the model knows ",
                                             ListNames(model.classes)));
    return violations.ToStatus();
  }
  if (targets.all_numbers()) {
    info.classes = targets.classes();
    violations.AddAll("csv.train", targets.number_status());
    // A given number of classes, or a model's, is meant.
    if (source.classes() == 0 && !model.matches_outputs) {
      std::string notice = targets.LabelsNotice(tables.train);
      if (!notice.empty()) info.notices.push_back(std::move(notice));
    }
    return violations.ToStatus();
  }
  absl::StatusOr<std::vector<std::string>> names = targets.Names(tables.train);
  violations.AddAll("csv.train", names.status());
  if (!names.ok()) return violations.ToStatus();
  info.class_names = *std::move(names);
  info.labels_follow_names = true;
  if (targets.are_mixed()) {
    info.notices.push_back(absl::StrCat("Each different text of the target is a class, numbers too: ",
                                        targets.mixed_status().message(), "."));
  }
  info.classes = static_cast<int64_t>(info.class_names.size());
  if (source.classes() > 0 && source.classes() != info.classes) {
    violations.Add("csv.classes", absl::StrCat("is ", source.classes(), ", but the training table has ",
                                               info.classes, " classes"));
  }
  return violations.ToStatus();
}

absl::Status SetValues(const v1::CsvSource& source, const TrainingTargets& targets, Tables& tables) {
  DatasetInfo& info = tables.info;
  info.target_type = TargetKind::kValues;
  info.target_shape = Shape({static_cast<int64_t>(tables.train.targets.size())});
  FieldViolations violations;
  if (source.classes() != 0) {
    violations.Add("csv.classes",
                   "is given, but the targets are values; leave it out, or give targets: class");
  }
  violations.AddAll("csv.train", targets.value_status());
  return violations.ToStatus();
}

// Returns whether the row of column names looks like a sample: it has a number in a column of numbers, and a
// text in none. The features and the targets are known.
bool NamesColumnsByNumbers(const CsvTable& table, const DatasetInfo& info) {
  if (!table.header) return false;
  std::vector<size_t> columns;
  for (size_t i = 0; i < table.features.size(); ++i) {
    const bool is_number = !info.preparation.has_value() ||
                           info.preparation->columns(static_cast<int>(i)).kind() == v1::COLUMN_KIND_NUMBER;
    if (is_number) columns.push_back(table.features[i]);
  }
  // Targets that follow no names are numbers: values or labels.
  if (!info.labels_follow_names) {
    columns.insert(columns.end(), table.targets.begin(), table.targets.end());
  }
  bool any = false;
  for (const size_t column : columns) {
    double ignored = 0;
    const std::string& name = table.names[column];
    const bool is_number = ParseCsvNumber(name, table.rules.decimal_comma, &ignored);
    // A sample may miss a cell.
    if (!is_number && !table.rules.IsMissing(name)) return false;
    any |= is_number;
  }
  return any;
}

// Sets the names of columns, and the notices of matches with the model.
void SetColumns(const v1::CsvSource& source, const DataNames& model, Tables& tables) {
  const CsvTable& train = tables.train;
  DatasetInfo& info = tables.info;
  info.feature_names = CsvColumnNames(train, train.features);
  info.table_format = train.format.ToMessage();
  info.target_names = CsvColumnNames(train, train.targets);
  info.table_columns = static_cast<int64_t>(train.names.size());
  info.feature_positions.assign(train.features.begin(), train.features.end());
  const bool are_known = !model.features.empty() && info.feature_names == model.features;
  if (NamesColumnsByNumbers(train, info) && !source.has_header() && !are_known) {
    info.notices.push_back(
        absl::StrCat("Row 1 of ", train.path, ", ", ListNames(train.names),
                     ", is taken for the names of the columns, and names columns by numbers; if it is a "
                     "sample, give csv.header: false."));
  }
  const auto unnamed = std::find(info.feature_names.begin(), info.feature_names.end(), "");
  if (unnamed != info.feature_names.end() && source.feature_columns().empty()) {
    info.notices.push_back(
        absl::StrCat("Column ", train.features[unnamed - info.feature_names.begin()] + 1, " of ", train.path,
                     " has no name and is taken for a feature; if it is an index, name the "
                     "features in csv.feature_columns."));
  }
  if (info.one_label) {
    info.one_class_mend = absl::StrCat(
        "the column ", ListNames({train.names[train.targets[0]]}), " is alike in all ", train.rows,
        " rows: name the target's column in csv.target_columns, or add rows of other classes");
  }
  if (!info.target_names.empty() && !model.targets.empty() && info.target_names != model.targets) {
    info.notices.push_back(absl::StrCat("The target is the column ", ListNames(info.target_names),
                                        ", in place of the model's ", ListNames(model.targets), "."));
  }
}

absl::Status CheckSource(const v1::CsvSource& source) {
  FieldViolations violations;
  if (source.train().empty()) violations.Add("csv.train", "is required: the path of a table");
  if (source.targets() == v1::TARGET_KIND_TOKENS)
    violations.Add("csv.targets", "is tokens; it must be class or values");
  if (source.targets() == v1::TARGET_KIND_CLASS && source.target_columns_size() > 1) {
    violations.Add("csv.target_columns", "names several columns, but a class is one");
  }
  if (source.classes() < 0 || source.classes() > std::numeric_limits<int32_t>::max()) {
    violations.Add("csv.classes",
                   absl::StrCat("is ", source.classes(), "; it must be at least 2, or left out"));
  }
  violations.AddAll("", CheckCsvFormat(source));
  violations.AddAll("", CheckCsvChoices(source));
  return violations.ToStatus();
}

// Turns the error of a table into an error of the field that names it. An error in the choice of columns has
// its own field already.
absl::Status OfField(const char* field, const absl::Status& status) {
  return GetFieldViolations(status).empty() ? UnderField(field, status) : status;
}

// Returns whether DescribeCsv and OpenCsv make the validation split.
bool Splits(const v1::DatasetSpec& spec) {
  const double fraction = spec.validation_split().fraction();
  // A wrong fraction is an error of the spec.
  return spec.has_validation_split() && spec.csv().validation().empty() && fraction > 0 && fraction < 1;
}

// Looks at the training table's rows, a row at a time.
class TrainingRows {
 public:
  TrainingRows(const v1::DatasetSpec& spec, const DataNames& model, TrainingTargets* targets)
      : source_(spec.csv()),
        model_(model),
        splits_(Splits(spec)),
        split_(spec.validation_split()),
        targets_(targets) {}

  absl::Status Add(const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields) {
    for (const size_t column : table.targets) targets_->Add(table, row, column, fields[column]);
    if (splits_) TANDEM_RETURN_IF_ERROR(split_.Add(table, row, fields));
    if (model_.matches_inputs) {
      // A model takes its own inputs: prepared as its table was, or numbers.
      if (!reader_.has_value()) {
        reader_.emplace(source_, table, model_.preparation);
        if (reader_->encoder().has_value()) unknown_.emplace(*reader_->encoder());
      }
      CountUnknown(table, fields);
      return reader_->Read(table, row, fields, &ignored_);
    }
    if (profiles_.empty()) profiles_ = ProfilesOf(source_, table);
    for (size_t i = 0; i < profiles_.size(); ++i) profiles_[i].Add(row, fields[table.features[i]]);
    return absl::OkStatus();
  }

  // Counts a row's categories that the model does not know.
  void CountUnknown(const CsvTable& table, const std::vector<absl::string_view>& fields) {
    if (!unknown_.has_value()) return;
    for (size_t i = 0; i < table.features.size(); ++i) unknown_->Add(i, fields[table.features[i]]);
  }
  // Returns the notices about these categories.
  std::vector<std::string> UnknownNotices() const {
    return unknown_.has_value() ? unknown_->Notices() : std::vector<std::string>();
  }

  const std::vector<ColumnProfile>& profiles() const { return profiles_; }
  bool splits() const { return splits_; }
  const CsvSplit& split() const { return split_; }

 private:
  const v1::CsvSource& source_;
  const DataNames& model_;
  std::optional<RowReader> reader_;
  std::optional<UnknownCategories> unknown_;
  const bool splits_;
  CsvSplit split_;
  TrainingTargets* const targets_;
  std::vector<ColumnProfile> profiles_;
  std::vector<float> ignored_;
};

// Returns the fault of a target_scaling that the model cannot follow, or "". The targets are values. A model
// keeps the scale of its targets, because its outputs have this scale.
std::string ModelScalingFault(v1::NumberScaling scaling, const DataNames& model) {
  if (!model.matches_inputs) return "";
  if (!model.preparation.has_value()) {
    if (scaling != v1::NUMBER_SCALING_STANDARD) return "";
    return "is standard, but the model takes a table's numbers as they are, and cannot keep a scale; leave "
           "target_scaling out, or train without initial_weights";
  }
  if (!model.matches_outputs) return "";
  const bool is_scaled = model.preparation->target_deviation() > 0;
  if (scaling == v1::NUMBER_SCALING_STANDARD && !is_scaled) {
    return "is standard, but the model was trained on targets without a scale; leave target_scaling out, or "
           "train the last layer anew";
  }
  if (scaling == v1::NUMBER_SCALING_NONE && is_scaled) {
    return "must not be none, because the model was trained on scaled targets; leave target_scaling out, and "
           "give the loss mse, l1, huber or smooth_l1; or train the last layer anew";
  }
  return "";
}

// Returns whether a new job on a model's table would scale its targets by default, as CsvColumns::scales.
// Columns that the table left out show by the scales of the others, unless `source` asks for scales.
bool IsMixed(const v1::CsvSource& source, const v1::TablePreparation& preparation) {
  const bool shows_by_scales = source.scaling() == v1::NUMBER_SCALING_UNSPECIFIED;
  const auto is_scaled = [](const v1::PreparedNumber& number) {
    return number.deviation() != 1 || number.quantiles_size() > 0;
  };
  return preparation.target_deviation() > 0 || source.columns_size() > 0 ||
         std::any_of(preparation.columns().begin(), preparation.columns().end(),
                     [&](const v1::PreparedColumn& column) {
                       return column.kind() != v1::COLUMN_KIND_NUMBER || column.missing_indicator() ||
                              (shows_by_scales &&
                               std::any_of(column.numbers().begin(), column.numbers().end(), is_scaled));
                     });
}

// Decides how features and targets become numbers. Their scales are not known yet.
absl::Status PlanTable(const v1::CsvSource& source, const DataNames& model, const TrainingRows& rows,
                       Tables& tables) {
  DatasetInfo& info = tables.info;
  const bool are_values = info.target_type == TargetKind::kValues;
  if (source.target_scaling() == v1::NUMBER_SCALING_STANDARD && !are_values) {
    return FieldError("csv.target_scaling", "is standard, but the target is a class; leave it out");
  }
  if (are_values) {
    const std::string fault = ModelScalingFault(source.target_scaling(), model);
    if (!fault.empty()) return FieldError("csv.target_scaling", fault);
  }
  if (model.matches_inputs) {
    TANDEM_RETURN_IF_ERROR(CheckModelChoices(source, tables.train, model.preparation));
    info.preparation = model.preparation;
    if (info.preparation.has_value()) {
      info.preparation->set_decimal_comma(
          DecimalCommaOf(source, tables.train, info.preparation->decimal_comma()));
    }
  } else {
    TANDEM_ASSIGN_OR_RETURN(tables.columns, PlanCsvColumns(source, tables.train, rows.profiles()));
    tables.train.features = tables.columns.features;
  }
  const bool is_mixed = model.matches_inputs
                            ? model.preparation.has_value() && IsMixed(source, *model.preparation)
                            : tables.columns.scales;
  const bool scales_target = source.target_scaling() == v1::NUMBER_SCALING_STANDARD ||
                             (source.target_scaling() == v1::NUMBER_SCALING_UNSPECIFIED && is_mixed);
  const bool has_scale = info.preparation.has_value() && model.matches_outputs;
  tables.scales_target = are_values && tables.train.targets.size() == 1 && scales_target && !has_scale;
  if (info.preparation.has_value()) {
    if (!model.matches_outputs) {
      info.preparation->clear_target_mean();
      info.preparation->clear_target_deviation();
    }
    if (!are_values) info.preparation->clear_target_deviation();
  } else if (!model.matches_inputs && (tables.columns.is_prepared || tables.scales_target)) {
    v1::TablePreparation& preparation = info.preparation.emplace();
    preparation.set_decimal_comma(tables.train.rules.decimal_comma);
    *preparation.mutable_missing_texts() = source.missing_texts();
    for (const ColumnPlan& plan : tables.columns.plans) *preparation.add_columns() = Unfitted(plan);
  }
  for (std::string& notice : tables.columns.notices) info.notices.push_back(std::move(notice));
  int64_t inputs = static_cast<int64_t>(tables.train.features.size());
  if (info.preparation.has_value()) {
    inputs = TableEncoder(*info.preparation).inputs();
    info.category_columns = CategoryColumnsOf(*info.preparation);
  }
  info.shape = Shape({inputs});
  return absl::OkStatus();
}

// Returns whether csv.target_scaling: standard would scale a target that is not scaled. For losses that take
// no scaled targets, the field is none: see FitData.
bool MayScaleTarget(const v1::CsvSource& source, const DataNames& model, const Tables& tables) {
  return tables.info.target_type == TargetKind::kValues && tables.train.targets.size() == 1 &&
         source.target_scaling() == v1::NUMBER_SCALING_UNSPECIFIED && !tables.scales_target &&
         !(tables.info.preparation.has_value() && tables.info.preparation->target_deviation() > 0) &&
         ModelScalingFault(v1::NUMBER_SCALING_STANDARD, model).empty();
}

// Reads the training table, and decides how its targets and features become numbers. `rows` and `targets`
// receive all rows.
absl::Status ReadTrainingTable(const v1::CsvSource& source, const DataNames& model, TrainingRows& rows,
                               TrainingTargets& targets, Tables& tables) {
  TANDEM_ASSIGN_OR_RETURN(tables.train, ReadCsvTable(source, source.train(), model,
                                                     [&](const CsvTable& table, int64_t row,
                                                         const std::vector<absl::string_view>& fields) {
                                                       return rows.Add(table, row, fields);
                                                     }));
  DatasetInfo& info = tables.info;
  info.sample_type = SampleType::kFloats;
  TANDEM_RETURN_IF_ERROR(targets.empty_status());
  // Targets that the model does not know may be numbers.
  const bool names_classes =
      !model.classes.empty() && (targets.known_status().ok() || !model.takes_other_outputs);
  const bool finds_kind = source.targets() == v1::TARGET_KIND_UNSPECIFIED;
  if (finds_kind && source.target_columns_size() <= 1 && !names_classes) {
    TANDEM_RETURN_IF_ERROR(targets.marks_status());
    TANDEM_RETURN_IF_ERROR(targets.mixed_status());
  }
  const bool classes =
      source.targets() == v1::TARGET_KIND_CLASS ||
      (finds_kind && tables.train.targets.size() == 1 && (!targets.all_numbers() || names_classes));
  TANDEM_RETURN_IF_ERROR(classes ? SetClasses(source, model, targets, tables)
                                 : SetValues(source, targets, tables));
  info.one_label = classes && targets.one_label();
  TANDEM_RETURN_IF_ERROR(PlanTable(source, model, rows, tables));
  SetColumns(source, model, tables);
  if (MayScaleTarget(source, model, tables)) {
    std::string notice = targets.ScaleNotice(tables.train);
    if (!notice.empty()) info.notices.push_back(std::move(notice));
  }
  return absl::OkStatus();
}

// Reads and checks the validation table. `rows` receives its categories that the model does not know.
absl::Status ReadValidationTable(const v1::CsvSource& source, TrainingRows& rows, Tables& tables) {
  const TargetReader reader(tables.info);
  const RowReader row_reader(source, tables.train, tables.info.preparation);
  std::vector<uint8_t> ignored;
  std::vector<float> ignored_inputs;
  TANDEM_ASSIGN_OR_RETURN(
      tables.validation,
      ReadCsvTableLike(source, source.validation(), tables.train,
                       [&](const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields) {
                         ignored.clear();
                         for (const size_t column : table.targets) {
                           TANDEM_RETURN_IF_ERROR(reader.Read(table, row, column, fields[column], &ignored));
                         }
                         rows.CountUnknown(table, fields);
                         return row_reader.Read(table, row, fields, &ignored_inputs);
                       }));
  return absl::OkStatus();
}

// Reads the whole tables, a row at a time.
absl::StatusOr<Tables> ReadTables(const v1::DatasetSpec& spec, const DataNames& model) {
  const v1::CsvSource& source = spec.csv();
  TANDEM_RETURN_IF_ERROR(CheckSource(source));
  Tables tables;
  DatasetInfo& info = tables.info;
  TrainingTargets targets(source.classes(),
                          source.target_columns_size() <= 1 ? source.targets() : v1::TARGET_KIND_VALUES,
                          model.classes);
  TrainingRows rows(spec, model, &targets);
  TANDEM_RETURN_IF_ERROR(OfField("csv.train", ReadTrainingTable(source, model, rows, targets, tables)));
  if (!source.validation().empty()) {
    TANDEM_RETURN_IF_ERROR(OfField("csv.validation", ReadValidationTable(source, rows, tables)));
  }
  for (std::string& notice : rows.UnknownNotices()) info.notices.push_back(std::move(notice));
  info.train_samples = tables.train.rows;
  info.validation_samples = tables.validation.rows;
  if (rows.splits()) {
    const bool is_class = info.target_type == TargetKind::kClass;
    TANDEM_ASSIGN_OR_RETURN(tables.split, rows.split().Choose(is_class));
    info.validation_samples = std::count(tables.split.begin(), tables.split.end(), true);
    info.train_samples -= info.validation_samples;
  }
  info.memory_bytes = (info.train_samples + info.validation_samples) *
                      (info.shape.elements() + info.target_shape.elements()) *
                      static_cast<int64_t>(sizeof(float));
  return tables;
}

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
absl::Status FitTable(const v1::CsvSource& source, int64_t limit, Tables& tables) {
  if (!tables.info.preparation.has_value()) return absl::OkStatus();
  if (tables.columns.plans.empty() && !tables.scales_target) return absl::OkStatus();
  v1::TablePreparation& preparation = *tables.info.preparation;
  std::vector<ColumnFit> fits;
  // Growing vectors would take up to three times the memory.
  const int64_t rows = limit > 0 ? std::min(limit, tables.info.train_samples) : tables.info.train_samples;
  for (const ColumnPlan& plan : tables.columns.plans) fits.emplace_back(plan, tables.train.rules);
  for (ColumnFit& fit : fits) fit.Reserve(rows);
  std::vector<double> targets;
  if (tables.scales_target) targets.reserve(rows);
  int64_t taken = 0;
  TANDEM_RETURN_IF_ERROR(ReadAgain(
      source, tables.train, tables.split,
      [&](const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields,
          bool is_validation) {
        if (is_validation || (limit > 0 && taken == limit)) {
          return absl::OkStatus();
        }
        ++taken;
        for (size_t i = 0; i < fits.size(); ++i) {
          fits[i].Add(fields[table.features[i]]);
        }
        if (!tables.scales_target) return absl::OkStatus();
        const size_t target = table.targets[0];
        TANDEM_ASSIGN_OR_RETURN(targets.emplace_back(), CsvNumber(table, row, target, fields[target], ""));
        return absl::OkStatus();
      }));
  for (size_t i = 0; i < fits.size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(*preparation.mutable_columns(static_cast<int>(i)), fits[i].Finish());
  }
  if (!tables.scales_target) return absl::OkStatus();
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
  const RowReader row_reader(source, known, info.preparation);
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
  TANDEM_ASSIGN_OR_RETURN(Tables tables, ReadTables(spec, none));
  TANDEM_RETURN_IF_ERROR(OfField("csv.train", FitTable(source, spec.train_limit(), tables)));
  const bool has_classes = tables.info.target_type == TargetKind::kClass;
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
  TANDEM_RETURN_IF_ERROR(
      OfField("csv.train", ReadRows(source, tables.train, tables.split, tables.info, &part, nullptr, [&] {
                ++count;
                if (part.samples.size() >= kStreamedBytes) give();
              })));
  give();
  return absl::OkStatus();
}

absl::StatusOr<DatasetInfo> DescribeCsv(const v1::DatasetSpec& spec, const DataNames& model) {
  TANDEM_ASSIGN_OR_RETURN(Tables tables, ReadTables(spec, model));
  return std::move(tables.info);
}

absl::StatusOr<OpenedDataset> OpenCsv(const v1::DatasetSpec& spec, const DataNames& model) {
  const v1::CsvSource& source = spec.csv();
  TANDEM_ASSIGN_OR_RETURN(Tables tables, ReadTables(spec, model));
  TANDEM_RETURN_IF_ERROR(OfField("csv.train", FitTable(source, spec.train_limit(), tables)));
  const DatasetInfo& info = tables.info;
  OpenedDataset opened;
  CsvPart train, validation;
  train.Reserve(info, info.train_samples);
  validation.Reserve(info, info.validation_samples);
  TANDEM_RETURN_IF_ERROR(
      OfField("csv.train", ReadRows(source, tables.train, tables.split, info, &train, &validation, [] {})));
  if (!source.validation().empty()) {
    TANDEM_RETURN_IF_ERROR(OfField(
        "csv.validation", ReadRows(source, tables.validation, {}, info, &validation, nullptr, [] {})));
  }
  opened.train = train.Take(info);
  if (info.validation_samples > 0) opened.validation = validation.Take(info);
  opened.info = std::move(tables.info);
  return opened;
}

}  // namespace tandem
