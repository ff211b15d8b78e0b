#include "engine/data/formats/csv_columns.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/data/table/table_encoder.h"

namespace tandem {
namespace {

constexpr int64_t kDefaultCategories = 100;
constexpr int64_t kMostInputs = 1 << 20;
constexpr size_t kMostFaults = 20;

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

// Returns the plan of a column, and adds faults of the user's choices.
ColumnPlan PlanOf(const v1::CsvSource& source, const std::string& name, const ColumnProfile& profile,
                  FieldViolations& violations) {
  const v1::CsvColumn choice = ChoiceOf(source, name);
  ColumnPlan plan;
  plan.name = name;
  plan.kind = profile.Kind();
  plan.missing = choice.missing() != v1::MISSING_VALUES_UNSPECIFIED ? choice.missing() : source.missing();
  plan.constant = choice.constant();
  plan.missing_indicator =
      choice.has_missing_indicator() ? choice.missing_indicator() : profile.missing() > 0;
  plan.scaling = choice.scaling() != v1::NUMBER_SCALING_UNSPECIFIED ? choice.scaling() : source.scaling();
  plan.has_time = profile.has_time();
  plan.day_first = profile.day_first();
  if (plan.missing == v1::MISSING_VALUES_REFUSE) plan.missing_indicator = false;
  if (plan.kind == v1::COLUMN_KIND_CATEGORY) {
    const int64_t most = choice.max_categories() > 0 ? choice.max_categories() : kDefaultCategories;
    plan.category_inputs = std::min(profile.distinct(), most);
    if (plan.missing == v1::MISSING_VALUES_MEAN || plan.missing == v1::MISSING_VALUES_MEDIAN) {
      // For all columns together, the choice is for numbers and dates.
      if (choice.missing() != v1::MISSING_VALUES_UNSPECIFIED) {
        violations.Add(absl::StrCat(FieldOf(source, name), ".missing"),
                       absl::StrCat("is for numbers and dates, but the column ", QuotedCell(name),
                                    " has categories; give most_frequent or constant"));
      }
      plan.missing = v1::MISSING_VALUES_UNSPECIFIED;
    }
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
  std::vector<std::string> texts, ignored, missing;
  for (size_t i = 0; i < table.features.size(); ++i) {
    const std::string& name = table.names[table.features[i]];
    const ColumnProfile& profile = profiles[i];
    known.insert(name);
    const v1::ColumnKind kind = profile.Kind();
    if (kind == v1::COLUMN_KIND_TEXT) texts.push_back(name);
    if (kind == v1::COLUMN_KIND_IGNORED) ignored.push_back(name);
    if (kind == v1::COLUMN_KIND_TEXT || kind == v1::COLUMN_KIND_IGNORED) continue;
    ColumnPlan plan = PlanOf(source, name, profile, violations);
    const std::string fault = FaultOf(table, table.features[i], profile, plan.missing);
    if (!fault.empty() && violations.violations().size() < kMostFaults) violations.Add("csv.train", fault);
    if (profile.missing() > 0) missing.push_back(absl::StrCat(QuotedCell(name), " ", profile.missing()));
    if (profile.is_order_unknown() && kind == v1::COLUMN_KIND_DATE) {
      columns.notices.push_back(
          absl::StrCat("The dates of the column ", QuotedCell(name),
                       " are read with the month first, because no date shows the order."));
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
                     ListNames(texts.empty() ? ignored : texts), " in csv.columns"));
  }
  columns.scales |= !texts.empty() || !ignored.empty() || source.columns_size() > 0;
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
  columns.is_prepared = columns.scales || scales_any || table.rules.decimal_comma;
  if (!columns.scales) return columns;
  // A column that csv.columns leaves out needs no notice.
  const auto is_chosen = [&](const std::string& name) {
    return WantedKind(source, name) != v1::COLUMN_KIND_UNSPECIFIED;
  };
  texts.erase(std::remove_if(texts.begin(), texts.end(), is_chosen), texts.end());
  ignored.erase(std::remove_if(ignored.begin(), ignored.end(), is_chosen), ignored.end());
  if (!texts.empty()) {
    columns.notices.push_back(
        absl::StrCat("Columns with many different texts are left out: ", ListNames(texts),
                     "; to use such a column, give its kind in csv.columns."));
  }
  if (!ignored.empty()) {
    columns.notices.push_back(
        absl::StrCat("Columns without different values are left out: ", ListNames(ignored), "."));
  }
  if (!missing.empty()) {
    constexpr size_t kShown = 20;
    const size_t shown = std::min(kShown, missing.size());
    std::string list;
    for (size_t i = 0; i < shown; ++i) absl::StrAppend(&list, i == 0 ? "" : ", ", missing[i]);
    columns.notices.push_back(absl::StrCat("Missing cells in ", table.rows, " rows are filled: ", list,
                                           missing.size() > shown ? ", ..." : "",
                                           ". csv.missing chooses the replacement."));
  }
  columns.notices.push_back(Kinds(columns.plans));
  return columns;
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
