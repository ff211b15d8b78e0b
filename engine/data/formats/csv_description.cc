#include "engine/data/formats/csv_description.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/csv_format.h"
#include "engine/data/formats/csv_row_reader.h"
#include "engine/data/formats/csv_split.h"
#include "engine/data/formats/csv_targets.h"
#include "engine/data/table/column_profile.h"
#include "engine/data/table/table_encoder.h"
#include "engine/data/table/unknown_categories.h"

namespace tandem {
namespace {

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
                        CsvDescription& description) {
  DatasetInfo& info = description.info;
  FieldViolations violations;
  if (!model.classes.empty() && targets.known_status().ok()) {
    info.class_names = model.classes;
    info.classes = static_cast<int64_t>(model.classes.size());
    info.labels_follow_names = true;
    TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> own,
                            OwnClasses(model, targets, description.train));
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
      std::string notice = targets.LabelsNotice(description.train);
      if (!notice.empty()) info.notices.push_back(std::move(notice));
    }
    return violations.ToStatus();
  }
  absl::StatusOr<std::vector<std::string>> names = targets.Names(description.train);
  violations.AddAll("csv.train", names.status());
  if (!names.ok()) return violations.ToStatus();
  info.class_names = *std::move(names);
  info.labels_follow_names = true;
  if (targets.are_mixed()) {
    info.notices.push_back(absl::StrCat("Each different text of the target is a class, numbers too: ",
                                        targets.mixed_status().message(), "."));
  }
  std::vector<std::string> missing;
  for (const std::string& name : info.class_names) {
    if (description.train.rules.IsMissing(name)) missing.push_back(name);
  }
  if (!missing.empty()) {
    info.notices.push_back(
        absl::StrCat("Texts that mean a missing cell are classes of the target: ", ListNames(missing),
                     "; if such a target is unknown, remove its row."));
  }
  info.classes = static_cast<int64_t>(info.class_names.size());
  if (source.classes() > 0 && source.classes() != info.classes) {
    violations.Add("csv.classes", absl::StrCat("is ", source.classes(), ", but the training table has ",
                                               info.classes, " classes"));
  }
  return violations.ToStatus();
}

absl::Status SetValues(const v1::CsvSource& source, const TrainingTargets& targets,
                       CsvDescription& description) {
  DatasetInfo& info = description.info;
  info.target_type = TargetKind::kValues;
  info.target_shape = Shape({static_cast<int64_t>(description.train.targets.size())});
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
void SetColumns(const v1::CsvSource& source, const DataNames& model, CsvDescription& description) {
  const CsvTable& train = description.train;
  DatasetInfo& info = description.info;
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
  std::optional<CsvRowReader> reader_;
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
                       CsvDescription& description) {
  DatasetInfo& info = description.info;
  const bool are_values = info.target_type == TargetKind::kValues;
  if (source.target_scaling() == v1::NUMBER_SCALING_STANDARD && !are_values) {
    return FieldError("csv.target_scaling", "is standard, but the target is a class; leave it out");
  }
  if (are_values) {
    const std::string fault = ModelScalingFault(source.target_scaling(), model);
    if (!fault.empty()) return FieldError("csv.target_scaling", fault);
  }
  if (model.matches_inputs) {
    TANDEM_RETURN_IF_ERROR(CheckModelChoices(source, description.train, model.preparation));
    info.preparation = model.preparation;
    if (info.preparation.has_value()) {
      info.preparation->set_decimal_comma(
          DecimalCommaOf(source, description.train, info.preparation->decimal_comma()));
    }
  } else {
    TANDEM_ASSIGN_OR_RETURN(description.columns, PlanCsvColumns(source, description.train, rows.profiles()));
    description.train.features = description.columns.features;
  }
  const bool is_mixed = model.matches_inputs
                            ? model.preparation.has_value() && IsMixed(source, *model.preparation)
                            : description.columns.scales;
  const bool scales_target = source.target_scaling() == v1::NUMBER_SCALING_STANDARD ||
                             (source.target_scaling() == v1::NUMBER_SCALING_UNSPECIFIED && is_mixed);
  const bool has_scale = info.preparation.has_value() && model.matches_outputs;
  description.scales_target =
      are_values && description.train.targets.size() == 1 && scales_target && !has_scale;
  if (info.preparation.has_value()) {
    if (!model.matches_outputs) {
      info.preparation->clear_target_mean();
      info.preparation->clear_target_deviation();
    }
    if (!are_values) info.preparation->clear_target_deviation();
  } else if (!model.matches_inputs && (description.columns.is_prepared || description.scales_target)) {
    v1::TablePreparation& preparation = info.preparation.emplace();
    preparation.set_decimal_comma(description.train.rules.decimal_comma);
    *preparation.mutable_missing_texts() = source.missing_texts();
    for (const ColumnPlan& plan : description.columns.plans) *preparation.add_columns() = Unfitted(plan);
  }
  for (std::string& notice : description.columns.notices) info.notices.push_back(std::move(notice));
  int64_t inputs = static_cast<int64_t>(description.train.features.size());
  if (info.preparation.has_value()) {
    inputs = TableEncoder(*info.preparation).inputs();
    info.category_columns = CategoryColumnsOf(*info.preparation);
  }
  info.shape = Shape({inputs});
  return absl::OkStatus();
}

// Returns whether csv.target_scaling: standard would scale a target that is not scaled. For losses that take
// no scaled targets, the field is none: see FitData.
bool MayScaleTarget(const v1::CsvSource& source, const DataNames& model, const CsvDescription& description) {
  return description.info.target_type == TargetKind::kValues && description.train.targets.size() == 1 &&
         source.target_scaling() == v1::NUMBER_SCALING_UNSPECIFIED && !description.scales_target &&
         !(description.info.preparation.has_value() &&
           description.info.preparation->target_deviation() > 0) &&
         ModelScalingFault(v1::NUMBER_SCALING_STANDARD, model).empty();
}

// Reads the training table, and decides how its targets and features become numbers. `rows` and `targets`
// receive all rows.
absl::Status ReadTrainingTable(const v1::CsvSource& source, const DataNames& model, TrainingRows& rows,
                               TrainingTargets& targets, CsvDescription& description) {
  TANDEM_ASSIGN_OR_RETURN(description.train, ReadCsvTable(source, source.train(), model,
                                                          [&](const CsvTable& table, int64_t row,
                                                              const std::vector<absl::string_view>& fields) {
                                                            return rows.Add(table, row, fields);
                                                          }));
  DatasetInfo& info = description.info;
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
      (finds_kind && description.train.targets.size() == 1 && (!targets.all_numbers() || names_classes));
  TANDEM_RETURN_IF_ERROR(classes ? SetClasses(source, model, targets, description)
                                 : SetValues(source, targets, description));
  info.one_label = classes && targets.one_label();
  TANDEM_RETURN_IF_ERROR(PlanTable(source, model, rows, description));
  SetColumns(source, model, description);
  if (MayScaleTarget(source, model, description)) {
    std::string notice = targets.ScaleNotice(description.train);
    if (!notice.empty()) info.notices.push_back(std::move(notice));
  }
  return absl::OkStatus();
}

// Reads and checks the validation table. `rows` receives its categories that the model does not know.
absl::Status ReadValidationTable(const v1::CsvSource& source, TrainingRows& rows,
                                 CsvDescription& description) {
  const TargetReader reader(description.info);
  const CsvRowReader row_reader(source, description.train, description.info.preparation);
  std::vector<uint8_t> ignored;
  std::vector<float> ignored_inputs;
  TANDEM_ASSIGN_OR_RETURN(
      description.validation,
      ReadCsvTableLike(source, source.validation(), description.train,
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

}  // namespace

absl::StatusOr<CsvDescription> ReadCsvDescription(const v1::DatasetSpec& spec, const DataNames& model) {
  const v1::CsvSource& source = spec.csv();
  TANDEM_RETURN_IF_ERROR(CheckSource(source));
  CsvDescription description;
  DatasetInfo& info = description.info;
  TrainingTargets targets(source.classes(),
                          source.target_columns_size() <= 1 ? source.targets() : v1::TARGET_KIND_VALUES,
                          model.classes);
  TrainingRows rows(spec, model, &targets);
  TANDEM_RETURN_IF_ERROR(
      CsvErrorOf("csv.train", ReadTrainingTable(source, model, rows, targets, description)));
  if (!source.validation().empty()) {
    TANDEM_RETURN_IF_ERROR(CsvErrorOf("csv.validation", ReadValidationTable(source, rows, description)));
  }
  for (std::string& notice : rows.UnknownNotices()) info.notices.push_back(std::move(notice));
  info.train_samples = description.train.rows;
  info.validation_samples = description.validation.rows;
  if (rows.splits()) {
    const bool is_class = info.target_type == TargetKind::kClass;
    TANDEM_ASSIGN_OR_RETURN(description.split, rows.split().Choose(is_class));
    info.validation_samples = std::count(description.split.begin(), description.split.end(), true);
    info.train_samples -= info.validation_samples;
  }
  info.memory_bytes = (info.train_samples + info.validation_samples) *
                      (info.shape.elements() + info.target_shape.elements()) *
                      static_cast<int64_t>(sizeof(float));
  return description;
}

}  // namespace tandem
