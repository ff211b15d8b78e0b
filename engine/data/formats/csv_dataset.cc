#include "engine/data/formats/csv_dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/csv_table.h"
#include "engine/data/memory_dataset.h"

namespace tandem {
namespace {

// The limits of class names: their number and their bytes. A column beyond them names no classes.
constexpr size_t kMaxClassNames = 1 << 20;
constexpr size_t kMaxNamesBytes = size_t{64} << 20;
// The bytes of samples that are passed at once.
constexpr size_t kStreamedBytes = size_t{1} << 20;

template <typename T>
void Append(T value, std::vector<uint8_t>* bytes) {
  const auto* begin = reinterpret_cast<const uint8_t*>(&value);
  bytes->insert(bytes->end(), begin, begin + sizeof value);
}

// Parses a class that is a number, below `classes` unless that is 0.
absl::StatusOr<int32_t> ClassNumber(const CsvTable& table, int64_t row, size_t column, absl::string_view text,
                                    int64_t classes) {
  double number = 0;
  if (!ParseCsvNumber(text, &number) || number != std::floor(number) || number < 0 ||
      number >= std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(CsvPlace(table, row, column), " is ", QuotedCell(text),
                                                   "; classes must be integers from 0, or text"));
  }
  if (classes > 0 && number >= static_cast<double>(classes)) {
    return absl::InvalidArgumentError(absl::StrCat(CsvPlace(table, row, column), " is class ", text,
                                                   ", outside the ", classes, " classes (0 to ", classes - 1,
                                                   ")"));
  }
  return static_cast<int32_t>(number);
}

absl::StatusOr<float> Number(const CsvTable& table, int64_t row, size_t column, absl::string_view text,
                             absl::string_view advice) {
  double number = 0;
  if (ParseCsvNumber(text, &number)) return static_cast<float>(number);
  return absl::InvalidArgumentError(absl::StrCat(
      CsvPlace(table, row, column),
      absl::StripAsciiWhitespace(text).empty() ? " is empty" : absl::StrCat(" is ", QuotedCell(text)),
      "; it must be a finite number (at most 3.4e38)", advice));
}

absl::Status EmptyTarget(const CsvTable& table, int64_t row, size_t column) {
  const bool is_unnamed = table.names[column].empty() && column + 1 == table.names.size();
  return absl::InvalidArgumentError(absl::StrCat(
      CsvPlace(table, row, column), " is empty, but it is a target; ",
      is_unnamed
          ? "the first row ends with a delimiter, so that the last column has no name: remove the delimiter "
            "at the end of each row, or name the target in csv.target_columns"
          : "fill it in, or remove the row"));
}

// Gathers the training table's targets until their kind is known.
class TrainingTargets {
 public:
  // `classes` is the source's number, or 0. `named`: the targets may be names of classes. `known` has the
  // model's names and must outlive this object.
  TrainingTargets(int64_t classes, bool named, const std::vector<std::string>& known)
      : classes_(classes), keeps_names_(named), known_(known.begin(), known.end()) {}

  void Add(const CsvTable& table, int64_t row, size_t column, absl::string_view text) {
    text = absl::StripAsciiWhitespace(text);
    if (text.empty()) {
      if (empty_status_.ok()) empty_status_ = EmptyTarget(table, row, column);
      return;
    }
    double number = 0;
    Seen& seen = ParseCsvNumber(text, &number) ? numbers_ : texts_;
    if (seen.count++ == 0) seen.place = absl::StrCat(CsvPlace(table, row, column), " is ", QuotedCell(text));
    if (&seen == &texts_ && value_status_.ok()) value_status_ = Number(table, row, column, text, "").status();
    if (known_.contains(text)) {
      knows_any_ = true;
    } else if (known_status_.ok() && !known_.empty()) {
      known_status_ = absl::InvalidArgumentError(absl::StrCat(
          CsvPlace(table, row, column), " is ", QuotedCell(text),
          ", a class that the model does not know; leave such rows out, or correct what is misspelt"));
    }
    if (number_status_.ok()) {
      const absl::StatusOr<int32_t> number = ClassNumber(table, row, column, text, classes_);
      number_status_ = number.status();
      if (number.ok()) {
        largest_ = std::max(largest_, *number);
        smallest_ = std::min(smallest_, *number);
      }
    }
    if (!keeps_names_ || !names_.emplace(text).second) return;
    names_bytes_ += sizeof(std::string) + text.size();
    if (names_.size() <= kMaxClassNames && names_bytes_ <= kMaxNamesBytes) return;
    keeps_names_ = false;
    names_ = {};
  }

  // Each status below is OK, or the error of the first target that breaks the rule. Here: no target is empty.
  const absl::Status& empty_status() const { return empty_status_; }
  bool are_mixed() const { return numbers_.count > 0 && texts_.count > 0; }
  // Numbers are not mixed with text. The error names the first of the rarer kind.
  absl::Status mixed_status() const {
    if (!are_mixed()) return absl::OkStatus();
    const bool is_text = texts_.count <= numbers_.count;
    const Seen& fewer = is_text ? texts_ : numbers_;
    const Seen& others = is_text ? numbers_ : texts_;
    return absl::InvalidArgumentError(absl::StrCat(
        fewer.place, is_text ? ", which is no number" : ", which is a number", ", but the column holds ",
        is_text ? "numbers" : "text", " in ", others.count, others.count == 1 ? " other row" : " other rows",
        "; correct it, or give csv.targets: TARGET_KIND_CLASS if the column names classes"));
  }
  bool all_numbers() const { return value_status_.ok(); }
  // All targets are values.
  const absl::Status& value_status() const { return value_status_; }
  // All targets are numbers of classes.
  const absl::Status& number_status() const { return number_status_; }
  // The model knows all targets by name. OK without a model.
  const absl::Status& known_status() const { return known_status_; }
  // Returns whether the model knows any target.
  bool knows_any() const { return knows_any_; }
  int64_t classes() const { return classes_ > 0 ? classes_ : int64_t{1} + largest_; }
  // Returns whether all targets have the same class.
  bool one_label() const {
    return number_status_.ok() ? smallest_ == largest_ : keeps_names_ && names_.size() == 1;
  }
  // Returns the names in their order.
  absl::StatusOr<std::vector<std::string>> Names(const CsvTable& table) const {
    if (!keeps_names_) {
      return absl::InvalidArgumentError(
          absl::StrCat(table.path, ": column ", QuotedCell(table.names[table.targets[0]]), " has more than ",
                       kMaxClassNames, " different texts, or texts too long, to be names of classes"));
    }
    std::vector<std::string> names(names_.begin(), names_.end());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  const int64_t classes_;
  bool keeps_names_;
  absl::flat_hash_set<std::string> names_;
  size_t names_bytes_ = 0;
  const absl::flat_hash_set<absl::string_view> known_;
  bool knows_any_ = false;
  absl::Status known_status_;
  int32_t largest_ = 0;
  int32_t smallest_ = std::numeric_limits<int32_t>::max();
  // The number of targets of a kind, and the first.
  struct Seen {
    int64_t count = 0;
    std::string place;
  };
  Seen numbers_;
  Seen texts_;
  absl::Status empty_status_;
  absl::Status value_status_;
  absl::Status number_status_;
};

// Converts targets to numbers, as `info` says. `info` must outlive it.
class TargetReader {
 public:
  explicit TargetReader(const DatasetInfo& info) : info_(info) {
    for (size_t i = 0; i < info.class_names.size(); ++i) {
      numbers_.emplace(info.class_names[i], static_cast<int32_t>(i));
    }
  }

  absl::Status Read(const CsvTable& table, int64_t row, size_t column, absl::string_view text,
                    std::vector<uint8_t>* bytes) const {
    text = absl::StripAsciiWhitespace(text);
    if (text.empty()) return EmptyTarget(table, row, column);
    if (info_.target_type == TargetType::kValues) {
      TANDEM_ASSIGN_OR_RETURN(const float value, Number(table, row, column, text, ""));
      Append(value, bytes);
      return absl::OkStatus();
    }
    if (!numbers_.empty()) {
      const auto found = numbers_.find(text);
      if (found == numbers_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            CsvPlace(table, row, column), " is ", QuotedCell(text), ", a class that the training table",
            " does not have; the classes are ", ListNames(info_.class_names)));
      }
      Append(found->second, bytes);
      return absl::OkStatus();
    }
    TANDEM_ASSIGN_OR_RETURN(const int32_t number, ClassNumber(table, row, column, text, info_.classes));
    Append(number, bytes);
    return absl::OkStatus();
  }

 private:
  const DatasetInfo& info_;
  absl::flat_hash_map<absl::string_view, int32_t> numbers_;
};

absl::StatusOr<float> Feature(const CsvTable& table, int64_t row, size_t column,
                              const std::vector<absl::string_view>& fields) {
  return Number(table, row, column, fields[column], ", or leave the column out of csv.feature_columns");
}

absl::Status CheckFeatures(const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields) {
  for (const size_t column : table.features) {
    TANDEM_RETURN_IF_ERROR(Feature(table, row, column, fields).status());
  }
  return absl::OkStatus();
}

struct Tables {
  DatasetInfo info;
  CsvTable train;
  CsvTable validation;
};

absl::Status SetClasses(const v1::CsvSource& source, const DataNames& model, const TrainingTargets& targets,
                        Tables& tables) {
  DatasetInfo& info = tables.info;
  FieldViolations violations;
  if (!model.classes.empty() && targets.known_status().ok()) {
    info.class_names = model.classes;
    info.classes = static_cast<int64_t>(model.classes.size());
    info.labels_follow_names = true;
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
  info.target_type = TargetType::kValues;
  info.target_shape = Shape({static_cast<int64_t>(tables.train.targets.size())});
  FieldViolations violations;
  if (source.classes() != 0) {
    violations.Add("csv.classes",
                   "is given, but the targets are values; leave it out, or give targets: class");
  }
  violations.AddAll("csv.train", targets.value_status());
  return violations.ToStatus();
}

// Returns whether the row of column names looks like a sample.
bool NamesFeaturesByNumbers(const CsvTable& table) {
  double ignored = 0;
  return table.header && std::all_of(table.features.begin(), table.features.end(), [&](size_t feature) {
           return ParseCsvNumber(table.names[feature], &ignored);
         });
}

// Sets the names of columns, and the notices of matches with the model.
void SetColumns(const v1::CsvSource& source, const DataNames& model, Tables& tables) {
  const CsvTable& train = tables.train;
  DatasetInfo& info = tables.info;
  info.feature_names = CsvColumnNames(train, train.features);
  info.target_names = CsvColumnNames(train, train.targets);
  info.table_columns = static_cast<int64_t>(train.names.size());
  info.feature_positions.assign(train.features.begin(), train.features.end());
  const bool are_known = !model.features.empty() && info.feature_names == model.features;
  if (NamesFeaturesByNumbers(train) && !source.has_header() && !are_known) {
    info.notices.push_back(
        absl::StrCat("Row 1 of ", train.path, ", ", ListNames(train.names),
                     ", is taken for the names of the columns, and names each feature by a "
                     "number; if it is a sample, give csv.header: false."));
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
  violations.AddAll("", CsvDelimiter(source).status());
  return violations.ToStatus();
}

// Turns the error of a table into an error of the field that names it. An error in the choice of columns has
// its own field already.
absl::Status OfField(const char* field, const absl::Status& status) {
  if (status.ok() || !GetFieldViolations(status).empty()) return status;
  FieldViolations violations;
  violations.AddAll(field, status);
  return violations.ToStatus();
}

// Reads the whole tables, a row at a time.
absl::StatusOr<Tables> ReadTables(const v1::CsvSource& source, const DataNames& model) {
  TANDEM_RETURN_IF_ERROR(CheckSource(source));
  Tables tables;
  const bool one_target = source.target_columns_size() <= 1;
  TrainingTargets targets(source.classes(), one_target && source.targets() != v1::TARGET_KIND_VALUES,
                          model.classes);
  absl::StatusOr<CsvTable> train =
      ReadCsvTable(source, source.train(), model,
                   [&](const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields) {
                     for (const size_t column : table.targets)
                       targets.Add(table, row, column, fields[column]);
                     return CheckFeatures(table, row, fields);
                   });
  TANDEM_RETURN_IF_ERROR(OfField("csv.train", train.status()));
  tables.train = *std::move(train);

  DatasetInfo& info = tables.info;
  info.shape = Shape({static_cast<int64_t>(tables.train.features.size())});
  info.sample_type = SampleType::kFloats;
  // Targets that the model does not know may be numbers.
  const bool names_classes =
      !model.classes.empty() && (targets.known_status().ok() || !model.takes_other_outputs);
  TANDEM_RETURN_IF_ERROR(OfField("csv.train", targets.empty_status()));
  if (source.targets() == v1::TARGET_KIND_UNSPECIFIED && one_target && !names_classes) {
    TANDEM_RETURN_IF_ERROR(OfField("csv.train", targets.mixed_status()));
  }
  const bool classes = source.targets() == v1::TARGET_KIND_CLASS ||
                       (source.targets() == v1::TARGET_KIND_UNSPECIFIED && tables.train.targets.size() == 1 &&
                        (!targets.all_numbers() || names_classes));
  TANDEM_RETURN_IF_ERROR(classes ? SetClasses(source, model, targets, tables)
                                 : SetValues(source, targets, tables));
  info.one_label = classes && targets.one_label();
  SetColumns(source, model, tables);

  if (!source.validation().empty()) {
    const TargetReader reader(info);
    std::vector<uint8_t> ignored;
    absl::StatusOr<CsvTable> validation = ReadCsvTableLike(
        source, source.validation(), tables.train,
        [&](const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields) {
          ignored.clear();
          for (const size_t column : table.targets) {
            TANDEM_RETURN_IF_ERROR(reader.Read(table, row, column, fields[column], &ignored));
          }
          return CheckFeatures(table, row, fields);
        });
    TANDEM_RETURN_IF_ERROR(OfField("csv.validation", validation.status()));
    tables.validation = *std::move(validation);
  }
  info.train_samples = tables.train.rows;
  info.validation_samples = tables.validation.rows;
  info.memory_bytes = (info.train_samples + info.validation_samples) *
                      (info.shape.elements() + info.target_shape.elements()) *
                      static_cast<int64_t>(sizeof(float));
  return tables;
}

// Reads a table again. Appends each row to `features` and `targets`, then calls `next`.
absl::Status ReadRows(const v1::CsvSource& source, const CsvTable& known, const DatasetInfo& info,
                      std::vector<uint8_t>& features, std::vector<uint8_t>& targets,
                      absl::FunctionRef<void()> next) {
  const TargetReader reader(info);
  TANDEM_ASSIGN_OR_RETURN(
      const CsvTable table,
      ReadCsvTableLike(source, known.path, known,
                       [&](const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields) {
                         for (const size_t column : table.features) {
                           TANDEM_ASSIGN_OR_RETURN(const float value, Feature(table, row, column, fields));
                           Append(value, &features);
                         }
                         for (const size_t column : table.targets) {
                           TANDEM_RETURN_IF_ERROR(reader.Read(table, row, column, fields[column], &targets));
                         }
                         next();
                         return absl::OkStatus();
                       }));
  if (table.rows == known.rows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(table.path, " changed while it was read"));
}

// Reads a table again and keeps its samples.
absl::StatusOr<std::unique_ptr<const Dataset>> LoadTable(const v1::CsvSource& source, const CsvTable& known,
                                                         const DatasetInfo& info) {
  const auto sample_bytes = static_cast<int64_t>(known.features.size() * sizeof(float));
  const auto target_bytes = static_cast<int64_t>(known.targets.size() * sizeof(float));
  std::vector<uint8_t> features, targets;
  features.reserve(known.rows * sample_bytes);
  targets.reserve(known.rows * target_bytes);
  TANDEM_RETURN_IF_ERROR(ReadRows(source, known, info, features, targets, [] {}));
  return std::make_unique<MemoryDataset>(sample_bytes, std::move(features), target_bytes, std::move(targets));
}

}  // namespace

absl::Status StreamCsv(const v1::CsvSource& source, UseSamples use) {
  // The model's names would only change the order.
  const DataNames none = {.matches_inputs = false, .matches_outputs = false};
  TANDEM_ASSIGN_OR_RETURN(const Tables tables, ReadTables(source, none));
  const bool has_classes = tables.info.target_type == TargetType::kClass;
  std::vector<uint8_t> features, targets;
  int64_t first = 0, count = 0;
  const auto give = [&] {
    if (count == 0) return;
    use(first, count, features.data(),
        has_classes ? reinterpret_cast<const int32_t*>(targets.data()) : nullptr);
    features.clear();
    targets.clear();
    first += count;
    count = 0;
  };
  TANDEM_RETURN_IF_ERROR(
      OfField("csv.train", ReadRows(source, tables.train, tables.info, features, targets, [&] {
                ++count;
                if (features.size() >= kStreamedBytes) give();
              })));
  give();
  return absl::OkStatus();
}

absl::StatusOr<DatasetInfo> DescribeCsv(const v1::CsvSource& source, const DataNames& model) {
  TANDEM_ASSIGN_OR_RETURN(Tables tables, ReadTables(source, model));
  return std::move(tables.info);
}

absl::StatusOr<OpenedDataset> OpenCsv(const v1::CsvSource& source, const DataNames& model) {
  TANDEM_ASSIGN_OR_RETURN(Tables tables, ReadTables(source, model));
  OpenedDataset opened;
  auto train = LoadTable(source, tables.train, tables.info);
  TANDEM_RETURN_IF_ERROR(OfField("csv.train", train.status()));
  opened.train = *std::move(train);
  if (tables.validation.rows > 0) {
    auto validation = LoadTable(source, tables.validation, tables.info);
    TANDEM_RETURN_IF_ERROR(OfField("csv.validation", validation.status()));
    opened.validation = *std::move(validation);
  }
  opened.info = std::move(tables.info);
  return opened;
}

}  // namespace tandem
