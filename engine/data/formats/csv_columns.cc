#include "engine/data/formats/csv_columns.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/data/table/table_encoder.h"

namespace tandem {
namespace {

constexpr int64_t kDefaultCategories = 100;
constexpr int64_t kMostInputs = 1 << 20;
constexpr size_t kMostFaults = 20;
constexpr size_t kShownColumns = 20;

// Returns the choice for a column, or an empty choice.
v1::CsvColumn ChoiceOf(const v1::CsvSource& source, const std::string& name) {
  const auto found = std::find_if(source.columns().begin(), source.columns().end(),
                                  [&](const v1::CsvColumn& column) { return column.name() == name; });
  return found == source.columns().end() ? v1::CsvColumn() : *found;
}

std::string FieldOf(const v1::CsvSource& source, const std::string& name) {
  for (int i = 0; i < source.columns_size(); ++i) {
    if (source.columns(i).name() == name) return absl::StrCat("csv.columns[", i, "]");
  }
  return "csv";
}

bool IsForNumbers(v1::MissingValues missing) {
  return missing == v1::MISSING_VALUES_MEAN || missing == v1::MISSING_VALUES_MEDIAN;
}

// Returns the replacement that `source` gives for the missing cells of a column with this choice and this
// kind, or unspecified.
v1::MissingValues MissingFor(const v1::CsvSource& source, const v1::CsvColumn& choice, v1::ColumnKind kind) {
  if (choice.missing() != v1::MISSING_VALUES_UNSPECIFIED) return choice.missing();
  // For all columns together, mean and median are for numbers and dates.
  const bool fits = kind != v1::COLUMN_KIND_CATEGORY || !IsForNumbers(source.missing());
  return fits ? source.missing() : v1::MISSING_VALUES_UNSPECIFIED;
}

// Returns the scaling that `source` gives for a column with this choice, or unspecified.
v1::NumberScaling ScalingFor(const v1::CsvSource& source, const v1::CsvColumn& choice) {
  return choice.scaling() != v1::NUMBER_SCALING_UNSPECIFIED ? choice.scaling() : source.scaling();
}

// Returns the plan of a column, and adds faults of the user's choices.
ColumnPlan PlanOf(const v1::CsvSource& source, const std::string& name, const ColumnProfile& profile,
                  FieldViolations& violations) {
  const v1::CsvColumn choice = ChoiceOf(source, name);
  ColumnPlan plan;
  plan.name = name;
  plan.kind = profile.Kind();
  plan.missing = MissingFor(source, choice, plan.kind);
  plan.constant = choice.constant();
  plan.missing_indicator =
      choice.has_missing_indicator() ? choice.missing_indicator() : profile.missing() > 0;
  plan.scaling = ScalingFor(source, choice);
  plan.has_time = profile.has_time();
  plan.day_first = profile.day_first();
  if (plan.missing == v1::MISSING_VALUES_REFUSE) plan.missing_indicator = false;
  if (plan.kind == v1::COLUMN_KIND_CATEGORY) {
    plan.max_categories = choice.max_categories() > 0 ? choice.max_categories() : kDefaultCategories;
    plan.category_inputs = std::min(profile.distinct(), plan.max_categories);
    if (IsForNumbers(plan.missing)) {
      violations.Add(absl::StrCat(FieldOf(source, name), ".missing"),
                     absl::StrCat("is for numbers and dates, but the column ", QuotedCell(name),
                                  " has categories; give most_frequent or constant"));
    }
  } else if (plan.missing == v1::MISSING_VALUES_UNSPECIFIED) {
    plan.missing = v1::MISSING_VALUES_MEDIAN;
  }
  return plan;
}

// Returns the fault of a column's cells, or "".
std::string FaultOf(const CsvTable& table, size_t column, const ColumnProfile& profile,
                    v1::MissingValues missing) {
  const std::string name = QuotedCell(table.names[column]);
  std::string fault = profile.Fault(name);
  if (!fault.empty()) return absl::StrCat(table.path, ": ", fault);
  if (missing != v1::MISSING_VALUES_REFUSE || profile.missing() == 0) return "";
  return absl::StrCat(table.path, ": row ", profile.first_missing_row(), ", column ", name,
                      " is missing, as ", profile.missing(), " of ", table.rows,
                      " cells of this column are; fill the cells in, or give csv.missing: median");
}

// Returns "mean" for MISSING_VALUES_MEAN, if `prefix` is "MISSING_VALUES_".
std::string WordOf(absl::string_view value, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(value, prefix));
}
std::string WordOf(v1::ColumnKind kind) { return WordOf(v1::ColumnKind_Name(kind), "COLUMN_KIND_"); }
std::string WordOf(v1::NumberScaling scaling) {
  return WordOf(v1::NumberScaling_Name(scaling), "NUMBER_SCALING_");
}
std::string WordOf(v1::MissingValues missing) {
  if (missing == v1::MISSING_VALUES_UNSPECIFIED) return "no replacement";
  return WordOf(v1::MissingValues_Name(missing), "MISSING_VALUES_");
}

// Returns the preparation of a feature of a model that takes plain numbers.
v1::PreparedColumn PlainNumber() {
  return Unfitted({.name = "", .missing = v1::MISSING_VALUES_REFUSE, .scaling = v1::NUMBER_SCALING_NONE});
}

// Compares choices with a model's preparation.
class ModelChoices {
 public:
  // `is_plain`: the model takes plain numbers.
  ModelChoices(const v1::CsvSource& source, bool is_plain) : source_(source), is_plain_(is_plain) {}

  // Compares the choices for the column `name` of the table.
  void Compare(const std::string& name, const v1::PreparedColumn& prepared) {
    const v1::CsvColumn choice = ChoiceOf(source_, name);
    const std::string field = FieldOf(source_, name);
    name_ = name;
    if (choice.kind() != v1::COLUMN_KIND_UNSPECIFIED && choice.kind() != prepared.kind()) {
      Compare(absl::StrCat(field, ".kind"), WordOf(choice.kind()), WordOf(prepared.kind()));
      return;
    }
    const v1::MissingValues missing = MissingFor(source_, choice, prepared.kind());
    const bool is_own = choice.missing() != v1::MISSING_VALUES_UNSPECIFIED;
    const bool replaces = missing != v1::MISSING_VALUES_UNSPECIFIED && missing != v1::MISSING_VALUES_REFUSE;
    // A job whose table had no missing cells may have made a model of plain numbers.
    if (replaces && (is_own || !is_plain_)) {
      Compare(absl::StrCat(is_own ? field : "csv", ".missing"), WordOf(missing), WordOf(prepared.missing()));
    }
    if (missing == v1::MISSING_VALUES_CONSTANT && missing == prepared.missing()) {
      Compare(absl::StrCat(field, ".constant"), QuotedCell(choice.constant()),
              QuotedCell(prepared.constant()));
    }
    if (choice.has_missing_indicator() && missing != v1::MISSING_VALUES_REFUSE) {
      const auto word = [](bool value) { return value ? "true" : "false"; };
      Compare(absl::StrCat(field, ".missing_indicator"), word(choice.missing_indicator()),
              word(prepared.missing_indicator()));
    }
    if (prepared.kind() == v1::COLUMN_KIND_CATEGORY) {
      if (choice.max_categories() == 0) return;
      Compare(absl::StrCat(field, ".max_categories"), absl::StrCat(choice.max_categories()),
              absl::StrCat(prepared.max_categories()));
    } else if (ScalingFor(source_, choice) != v1::NUMBER_SCALING_UNSPECIFIED) {
      const bool is_own_scaling = choice.scaling() != v1::NUMBER_SCALING_UNSPECIFIED;
      Compare(absl::StrCat(is_own_scaling ? field : "csv", ".scaling"), WordOf(ScalingFor(source_, choice)),
              WordOf(prepared.scaling()));
    }
  }

  // Compares the choices for columns that are none of `features`, the model's columns in the table.
  void CompareOthers(const CsvTable& table, const std::set<std::string>& features) {
    for (int i = 0; i < source_.columns_size(); ++i) {
      const v1::CsvColumn& choice = source_.columns(i);
      if (features.count(choice.name()) > 0) continue;
      const std::string field = absl::StrCat("csv.columns[", i, "]");
      const bool is_there =
          std::find(table.names.begin(), table.names.end(), choice.name()) != table.names.end();
      const bool is_left_out = choice.kind() == v1::COLUMN_KIND_TEXT ||
                               choice.kind() == v1::COLUMN_KIND_IGNORED ||
                               choice.kind() == v1::COLUMN_KIND_UNSPECIFIED;
      if (is_there && is_left_out) continue;
      violations_.Add(
          absl::StrCat(field, is_there ? ".kind" : ".name"),
          absl::StrCat("is ", is_there ? WordOf(choice.kind()) : QuotedCell(choice.name()),
                       is_there ? ", but the loaded model does not take the column "
                                : ", which is no column of the table; the model takes ",
                       is_there ? QuotedCell(choice.name()) : ListNames({features.begin(), features.end()}),
                       "; leave it out"));
    }
  }

  void CompareTexts(const v1::TablePreparation& preparation) {
    const std::set<std::string> given(source_.missing_texts().begin(), source_.missing_texts().end());
    const std::set<std::string> known(preparation.missing_texts().begin(), preparation.missing_texts().end());
    if (given.empty() || given == known) return;
    violations_.Add("csv.missing_texts",
                    absl::StrCat("are ", ListNames({given.begin(), given.end()}),
                                 ", but the loaded model's preparation has ",
                                 known.empty() ? "none" : ListNames({known.begin(), known.end()}), kMend));
  }

  absl::Status ToStatus() const { return violations_.ToStatus(); }

 private:
  static constexpr absl::string_view kMend = "; leave it out: the model's preparation is used";

  void Compare(const std::string& field, absl::string_view given, absl::string_view known) {
    // A field of the whole table is blamed once.
    if (given == known || !blamed_.insert(field).second || blamed_.size() > kMostFaults) return;
    violations_.Add(field, absl::StrCat("is ", given, ", but the loaded model's preparation of the column ",
                                        QuotedCell(name_), " has ", known, kMend));
  }

  const v1::CsvSource& source_;
  const bool is_plain_;
  std::string name_;
  std::set<std::string> blamed_;
  FieldViolations violations_;
};

std::string CountText(int64_t count, absl::string_view one, absl::string_view many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

std::string Kinds(const std::vector<ColumnPlan>& plans) {
  int64_t numbers = 0, categories = 0, dates = 0, inputs = 0;
  for (const ColumnPlan& plan : plans) {
    numbers += plan.kind == v1::COLUMN_KIND_NUMBER ? 1 : 0;
    categories += plan.kind == v1::COLUMN_KIND_CATEGORY ? 1 : 0;
    dates += plan.kind == v1::COLUMN_KIND_DATE ? 1 : 0;
    inputs += InputsOf(Unfitted(plan));
  }
  return absl::StrCat("The table's columns become ", CountText(inputs, "input", "inputs"), ": ",
                      CountText(numbers, "column", "columns"), " of numbers, ", categories,
                      " of categories, ", dates, " of dates.");
}

// The columns that notices name.
struct SeenColumns {
  std::vector<std::string> texts;    // Left out, because they have texts.
  std::vector<std::string> ignored;  // Left out, because their cells do not differ.
  std::vector<std::string> missing;  // With missing cells: "'age' 12".
};

// Adds the notices about the columns of a prepared table.
void AddNotices(const v1::CsvSource& source, const CsvTable& table, SeenColumns seen, CsvColumns& columns) {
  // A column that csv.columns leaves out needs no notice.
  const auto is_chosen = [&](const std::string& name) {
    return WantedKind(source, name) != v1::COLUMN_KIND_UNSPECIFIED;
  };
  std::erase_if(seen.texts, is_chosen);
  std::erase_if(seen.ignored, is_chosen);
  if (!seen.texts.empty()) {
    columns.notices.push_back(
        absl::StrCat("Columns with many different texts are left out: ", ListNames(seen.texts),
                     "; to use such a column, give its kind in csv.columns."));
  }
  if (!seen.ignored.empty()) {
    columns.notices.push_back(
        absl::StrCat("Columns without different values are left out: ", ListNames(seen.ignored), "."));
  }
  if (!seen.missing.empty()) {
    const bool shows_all = seen.missing.size() <= kShownColumns;
    seen.missing.resize(std::min(kShownColumns, seen.missing.size()));
    columns.notices.push_back(absl::StrCat(
        "Of ", table.rows, " rows, these missing cells are filled: ", absl::StrJoin(seen.missing, ", "),
        shows_all ? "" : ", ...", ". csv.missing chooses the replacement."));
  }
  columns.notices.push_back(Kinds(columns.plans));
}

}  // namespace

v1::ColumnKind WantedKind(const v1::CsvSource& source, const std::string& name) {
  return ChoiceOf(source, name).kind();
}

std::vector<ColumnProfile> ProfilesOf(const v1::CsvSource& source, const CsvTable& table) {
  std::vector<ColumnProfile> profiles;
  for (const size_t column : table.features) {
    profiles.emplace_back(table.rules, WantedKind(source, table.names[column]));
  }
  return profiles;
}

absl::StatusOr<CsvColumns> PlanCsvColumns(const v1::CsvSource& source, const CsvTable& table,
                                          const std::vector<ColumnProfile>& profiles) {
  CsvColumns columns;
  FieldViolations violations;
  std::set<std::string> known;
  SeenColumns seen;
  for (size_t i = 0; i < table.features.size(); ++i) {
    const std::string& name = table.names[table.features[i]];
    const ColumnProfile& profile = profiles[i];
    known.insert(name);
    const v1::ColumnKind kind = profile.Kind();
    if (kind == v1::COLUMN_KIND_TEXT) seen.texts.push_back(name);
    if (kind == v1::COLUMN_KIND_IGNORED) seen.ignored.push_back(name);
    if (kind == v1::COLUMN_KIND_TEXT || kind == v1::COLUMN_KIND_IGNORED) continue;
    ColumnPlan plan = PlanOf(source, name, profile, violations);
    const std::string fault = FaultOf(table, table.features[i], profile, plan.missing);
    if (!fault.empty() && violations.violations().size() < kMostFaults) violations.Add("csv.train", fault);
    if (profile.missing() > 0) seen.missing.push_back(absl::StrCat(QuotedCell(name), " ", profile.missing()));
    if (profile.is_order_unknown() && kind == v1::COLUMN_KIND_DATE) {
      columns.notices.push_back(
          absl::StrCat("The dates of the column ", QuotedCell(name),
                       " are read with the month first, because no date shows the order; if the day is "
                       "first, write the dates as 2024-05-31."));
    }
    // A notice names a column without a name already, and the only column cannot be left out.
    if (profile.counts_rows() && !name.empty() && table.features.size() > 1 &&
        WantedKind(source, name) == v1::COLUMN_KIND_UNSPECIFIED) {
      columns.notices.push_back(absl::StrCat(
          "The column ", QuotedCell(name),
          " counts the rows. If it says nothing about a sample, leave it out: csv.columns: [{name: ",
          QuotedCell(name), ", kind: ignored}]."));
    }
    columns.scales |= kind != v1::COLUMN_KIND_NUMBER || profile.missing() > 0;
    columns.features.push_back(table.features[i]);
    columns.plans.push_back(std::move(plan));
  }
  for (int i = 0; i < source.columns_size(); ++i) {
    if (known.count(source.columns(i).name()) > 0) continue;
    violations.Add(absl::StrCat("csv.columns[", i, "].name"),
                   absl::StrCat("is ", QuotedCell(source.columns(i).name()),
                                ", which is no feature of the table; its features are ",
                                ListNames({known.begin(), known.end()})));
  }
  if (violations.empty() && columns.features.empty()) {
    violations.Add(
        "csv.feature_columns",
        absl::StrCat("leave nothing: no column has numbers, categories or dates; give the kind of ",
                     ListNames(seen.texts.empty() ? seen.ignored : seen.texts), " in csv.columns"));
  }
  columns.scales |= !seen.texts.empty() || !seen.ignored.empty() || source.columns_size() > 0;
  int64_t inputs = 0;
  const bool scales_any = source.scaling() != v1::NUMBER_SCALING_UNSPECIFIED;
  for (ColumnPlan& plan : columns.plans) {
    if (plan.scaling == v1::NUMBER_SCALING_UNSPECIFIED) {
      plan.scaling = columns.scales ? v1::NUMBER_SCALING_STANDARD : v1::NUMBER_SCALING_NONE;
    }
    inputs += InputsOf(Unfitted(plan));
  }
  if (inputs > kMostInputs) {
    violations.Add("csv.columns", absl::StrCat("make ", inputs, " inputs of a row; at most ", kMostInputs,
                                               " can be used: lower max_categories"));
  }
  if (!violations.empty()) return violations.ToStatus();
  // Missing texts may appear only in later tables.
  columns.is_prepared =
      columns.scales || scales_any || table.rules.decimal_comma || source.missing_texts_size() > 0;
  if (columns.scales) AddNotices(source, table, std::move(seen), columns);
  return columns;
}

absl::Status CheckModelChoices(const v1::CsvSource& source, const CsvTable& table,
                               const std::optional<v1::TablePreparation>& preparation) {
  ModelChoices choices(source, !preparation.has_value());
  std::set<std::string> features;
  for (size_t i = 0; i < table.features.size(); ++i) {
    const std::string& name = table.names[table.features[i]];
    features.insert(name);
    choices.Compare(name,
                    preparation.has_value() ? preparation->columns(static_cast<int>(i)) : PlainNumber());
  }
  choices.CompareOthers(table, features);
  if (preparation.has_value()) choices.CompareTexts(*preparation);
  return choices.ToStatus();
}

bool DecimalCommaOf(const v1::CsvSource& source, const CsvTable& table, bool model) {
  if (source.has_decimal_comma()) return source.decimal_comma();
  return model && !table.format.RulesOutDecimalCommas(table.names.size());
}

std::optional<v1::TablePreparation> PreparationFor(const v1::CsvSource& source, const CsvTable& table,
                                                   std::optional<v1::TablePreparation> preparation) {
  if (!preparation.has_value()) return preparation;
  preparation->set_decimal_comma(DecimalCommaOf(source, table, preparation->decimal_comma()));
  for (size_t i = 0; i < table.features.size(); ++i) {
    v1::PreparedColumn& column = *preparation->mutable_columns(static_cast<int>(i));
    const v1::CsvColumn choice = ChoiceOf(source, table.names[table.features[i]]);
    if (MissingFor(source, choice, column.kind()) != v1::MISSING_VALUES_REFUSE) continue;
    column.set_refuse_missing(true);
  }
  return preparation;
}

absl::Status CheckCsvChoices(const v1::CsvSource& source) {
  FieldViolations violations;
  std::set<std::string> seen;
  for (int i = 0; i < source.columns_size(); ++i) {
    const v1::CsvColumn& column = source.columns(i);
    const std::string field = absl::StrCat("csv.columns[", i, "]");
    if (!seen.insert(column.name()).second) {
      violations.Add(absl::StrCat(field, ".name"), absl::StrCat("is ", QuotedCell(column.name()), " again"));
    }
    if (column.max_categories() < 0 || column.max_categories() > ColumnProfile::kMostDistinct) {
      violations.Add(absl::StrCat(field, ".max_categories"),
                     absl::StrCat("is ", column.max_categories(), "; it must be from 1 to ",
                                  ColumnProfile::kMostDistinct));
    }
    if (column.constant().empty() == (column.missing() == v1::MISSING_VALUES_CONSTANT)) {
      violations.Add(absl::StrCat(field, ".constant"),
                     column.constant().empty()
                         ? "is required for missing: constant"
                         : "is given, but missing is not constant; give missing: constant");
    }
  }
  if (source.missing() == v1::MISSING_VALUES_CONSTANT) {
    violations.Add("csv.missing", "is constant, which needs a value for each column; give it in csv.columns");
  }
  if (source.target_scaling() == v1::NUMBER_SCALING_QUANTILES) {
    violations.Add("csv.target_scaling", "is quantiles; it must be none or standard");
  }
  if (source.target_scaling() == v1::NUMBER_SCALING_STANDARD &&
      (source.target_columns_size() > 1 || source.targets() == v1::TARGET_KIND_CLASS)) {
    violations.Add("csv.target_scaling", "is standard, which needs a single target column of numbers");
  }
  return violations.ToStatus();
}

}  // namespace tandem
