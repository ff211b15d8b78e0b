#include "engine/data/formats/csv_dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/data/formats/compressed_file.h"
#include "engine/data/formats/csv_reader.h"
#include "engine/data/memory_dataset.h"

namespace tandem {
namespace {

constexpr int64_t kMaxTableBytes = int64_t{4} << 30;
constexpr int64_t kHeaderBytes = 1 << 20;
constexpr size_t kMaxColumns = 1 << 20;
constexpr size_t kShownColumns = 20;
constexpr size_t kMostViolations = 100;

// How a table's columns are used.
struct Columns {
  std::vector<std::string> names;  // Positions from 0 where the table has no names.
  std::vector<size_t> features;
  std::vector<size_t> targets;
};

struct Table {
  std::string path;
  Columns columns;
  std::vector<float> features;       // [rows, features]
  std::vector<std::string> targets;  // [rows, targets]
  std::vector<int64_t> rows;         // The number of each in the file, from 1.
};

std::string Quote(absl::string_view text) {
  return absl::StrCat("'", ToUtf8(absl::Utf8SafeCHexEscape(text.substr(0, 60))),
                      text.size() > 60 ? "..." : "", "'");
}

// A number that is finite as a float too, with blanks around it.
bool ParseNumber(absl::string_view text, double* number) {
  text = absl::StripAsciiWhitespace(text);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const absl::from_chars_result result = absl::from_chars(text.data(), text.data() + text.size(), *number);
  return !text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size() &&
         std::abs(*number) <= std::numeric_limits<float>::max();
}

// Where a cell stands, for messages.
std::string Place(const Table& table, int64_t row, size_t column) {
  return absl::StrCat(table.path, ": row ", row, ", column ", Quote(table.columns.names[column]));
}

absl::StatusOr<char> DelimiterOf(const v1::CsvSource& source) {
  if (source.delimiter().empty()) return ',';
  if (source.delimiter() == "\\t") return '\t';
  const char delimiter = source.delimiter()[0];
  if (source.delimiter().size() == 1 && delimiter != '"' && delimiter != '\n' && delimiter != '\r') {
    return delimiter;
  }
  return FieldError("csv.delimiter",
                    absl::StrCat("is ", Quote(source.delimiter()), "; it must be one character"));
}

// Positions of the columns that `wanted` names.
template <typename Names>
std::vector<size_t> Find(const Names& wanted, const char* field, const Columns& columns,
                         FieldViolations& violations) {
  std::vector<size_t> found;
  if (wanted.empty()) return found;
  std::map<absl::string_view, size_t> positions;
  std::set<absl::string_view> twice;
  for (size_t i = 0; i < columns.names.size(); ++i) {
    if (!positions.emplace(columns.names[i], i).second) twice.insert(columns.names[i]);
  }
  std::vector<bool> taken(columns.names.size());
  for (int i = 0; i < wanted.size(); ++i) {
    const std::string path = absl::StrCat("csv.", field, "[", i, "]");
    const auto at = positions.find(wanted[i]);
    if (at == positions.end()) {
      std::vector<std::string> shown(columns.names.begin(),
                                     columns.names.begin() + std::min(kShownColumns, columns.names.size()));
      violations.Add(path,
                     absl::StrCat("is ", Quote(wanted[i]), ", and the table has no such column; it has ",
                                  ToUtf8(absl::Utf8SafeCHexEscape(absl::StrJoin(shown, ", "))),
                                  columns.names.size() > kShownColumns ? ", ..." : ""));
    } else if (twice.count(wanted[i]) != 0) {
      violations.Add(path, absl::StrCat("is ", Quote(wanted[i]),
                                        ", and the table has several columns of "
                                        "this name; give them different ones"));
    } else {
      if (taken[at->second]) violations.Add(path, absl::StrCat("is ", Quote(wanted[i]), " again"));
      taken[at->second] = true;
      found.push_back(at->second);
    }
    // One mistake, made over and over.
    if (violations.violations().size() >= kMostViolations) break;
  }
  return found;
}

absl::StatusOr<Columns> ChooseColumns(const v1::CsvSource& source, std::vector<std::string> names) {
  Columns columns{.names = std::move(names), .features = {}, .targets = {}};
  FieldViolations violations;
  columns.targets = Find(source.target_columns(), "target_columns", columns, violations);
  if (source.target_columns().empty()) columns.targets = {columns.names.size() - 1};
  columns.features = Find(source.feature_columns(), "feature_columns", columns, violations);
  std::vector<bool> is_target(columns.names.size());
  for (const size_t column : columns.targets) is_target[column] = true;
  if (source.feature_columns().empty()) {
    for (size_t column = 0; column < columns.names.size(); ++column) {
      if (!is_target[column]) columns.features.push_back(column);
    }
    if (violations.empty() && columns.features.empty()) {
      violations.Add("csv.feature_columns", "leave nothing: every column of the table is a target");
    }
  } else if (violations.empty()) {
    for (size_t i = 0; i < columns.features.size(); ++i) {
      if (!is_target[columns.features[i]]) continue;
      violations.Add(absl::StrCat("csv.feature_columns[", i, "]"),
                     absl::StrCat("is ", Quote(columns.names[columns.features[i]]), ", which is a target"));
    }
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return columns;
}

// Reads one row's cells.
absl::Status AddRow(const std::vector<absl::string_view>& fields, int64_t row, Table& table) {
  const Columns& columns = table.columns;
  if (fields.size() != columns.names.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        table.path, ": row ", row, " has ", fields.size(), " field", fields.size() == 1 ? "" : "s",
        ", but the table has ", columns.names.size(), " columns",
        fields.size() < columns.names.size()
            ? absl::StrCat("; column ", Quote(columns.names[fields.size()]), " is the first that is missing")
            : ""));
  }
  for (const size_t column : columns.features) {
    double number = 0;
    if (!ParseNumber(fields[column], &number)) {
      return absl::InvalidArgumentError(absl::StrCat(
          Place(table, row, column),
          absl::StripAsciiWhitespace(fields[column]).empty() ? " is empty"
                                                             : absl::StrCat(" is ", Quote(fields[column])),
          "; it must be a finite number (at most 3.4e38), or leave the column out of csv.feature_columns"));
    }
    table.features.push_back(static_cast<float>(number));
  }
  for (const size_t column : columns.targets)
    table.targets.emplace_back(absl::StripAsciiWhitespace(fields[column]));
  table.rows.push_back(row);
  return absl::OkStatus();
}

bool HasHeader(const v1::CsvSource& source) { return !source.has_header() || source.header(); }

// What columns are called, by the fields of the first row.
std::vector<std::string> NamesOf(const std::vector<absl::string_view>& fields, bool header) {
  std::vector<std::string> names;
  for (size_t i = 0; i < fields.size(); ++i) {
    names.push_back(header ? std::string(absl::StripAsciiWhitespace(fields[i])) : absl::StrCat(i));
  }
  return names;
}

// `like` is the training table, whose columns the validation table must have; null for the training table.
absl::StatusOr<Table> ReadTable(const v1::CsvSource& source, const std::string& path, char delimiter,
                                const Table* like) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<CompressedFile> file, CompressedFile::Open(path));
  // Where cells are single digits, their numbers, texts and rows take about so many times their bytes.
  const int64_t most = CompressedFile::MostInMemory(kMaxTableBytes, 10);
  TANDEM_ASSIGN_OR_RETURN(const std::string text, file->ReadAll(most));
  Table table{.path = path, .columns = {}, .features = {}, .targets = {}, .rows = {}};
  CsvReader reader(text, delimiter);
  std::vector<absl::string_view> fields;
  const auto next = [&]() -> absl::StatusOr<bool> {
    absl::StatusOr<bool> more = reader.Next(&fields);
    if (!more.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", more.status().message()));
    return more;
  };
  const bool header = HasHeader(source);
  TANDEM_ASSIGN_OR_RETURN(bool more, next());
  if (!more) return file->Error("has no rows");
  if (fields.size() > kMaxColumns)
    return file->Error(absl::StrCat("has ", fields.size(), " columns, more than can be read"));
  std::vector<std::string> names = NamesOf(fields, header);
  if (like == nullptr) {
    TANDEM_ASSIGN_OR_RETURN(table.columns, ChooseColumns(source, std::move(names)));
  } else {
    table.columns = like->columns;
    if (names != like->columns.names) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has other columns than ", like->path, ": it has ", names.size(), ", ",
                       Quote(absl::StrJoin(names, ", ")), ", in place of ", like->columns.names.size(), ", ",
                       Quote(absl::StrJoin(like->columns.names, ", "))));
    }
  }
  if (header) {
    TANDEM_ASSIGN_OR_RETURN(more, next());
  }
  while (more) {
    TANDEM_RETURN_IF_ERROR(AddRow(fields, reader.row(), table));
    if (static_cast<int64_t>(table.rows.size()) > kMaxSamples)
      return file->Error("has more rows than can be read");
    TANDEM_ASSIGN_OR_RETURN(more, next());
  }
  if (table.rows.empty()) return file->Error("has no rows but the one that names its columns");
  return table;
}

bool AllNumbers(const Table& table) {
  double ignored = 0;
  return std::all_of(table.targets.begin(), table.targets.end(),
                     [&](const std::string& text) { return ParseNumber(text, &ignored); });
}

absl::StatusOr<std::vector<float>> TargetValues(const Table& table) {
  std::vector<float> values;
  const size_t count = table.columns.targets.size();
  for (size_t i = 0; i < table.targets.size(); ++i) {
    double number = 0;
    if (!ParseNumber(table.targets[i], &number)) {
      return absl::InvalidArgumentError(
          absl::StrCat(Place(table, table.rows[i / count], table.columns.targets[i % count]), " is ",
                       Quote(table.targets[i]), "; it must be a finite number (at most 3.4e38)"));
    }
    values.push_back(static_cast<float>(number));
  }
  return values;
}

// Classes as numbers. With names, a target is one of them; else an integer from 0, below `classes` where that
// is not 0.
absl::StatusOr<std::vector<int32_t>> TargetClasses(const Table& table, const std::vector<std::string>& names,
                                                   int64_t classes) {
  std::vector<int32_t> labels;
  for (size_t i = 0; i < table.targets.size(); ++i) {
    const std::string& text = table.targets[i];
    const auto place = [&] { return Place(table, table.rows[i], table.columns.targets[0]); };
    if (!names.empty()) {
      const auto found = std::lower_bound(names.begin(), names.end(), text);
      if (found == names.end() || *found != text) {
        return absl::InvalidArgumentError(
            absl::StrCat(place(), " is ", Quote(text), ", a class that the training table does not have"));
      }
      labels.push_back(static_cast<int32_t>(found - names.begin()));
      continue;
    }
    double number = 0;
    if (!ParseNumber(text, &number) || number != std::floor(number) || number < 0 ||
        number >= std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place(), " is ", Quote(text), "; classes must be integers from 0, or text"));
    }
    if (classes > 0 && number >= static_cast<double>(classes)) {
      return absl::InvalidArgumentError(absl::StrCat(place(), " is class ", text, ", outside the ", classes,
                                                     " classes (0 to ", classes - 1, ")"));
    }
    labels.push_back(static_cast<int32_t>(number));
  }
  return labels;
}

struct Tables {
  DatasetInfo info;
  Table train;
  Table validation;
  bool validates = false;
  std::vector<uint8_t> train_targets;
  std::vector<uint8_t> validation_targets;
};

absl::Status SetClasses(const v1::CsvSource& source, Tables& tables, FieldViolations& violations) {
  DatasetInfo& info = tables.info;
  if (!AllNumbers(tables.train)) {
    info.class_names = tables.train.targets;
    std::sort(info.class_names.begin(), info.class_names.end());
    info.class_names.erase(std::unique(info.class_names.begin(), info.class_names.end()),
                           info.class_names.end());
    info.classes = static_cast<int64_t>(info.class_names.size());
    if (source.classes() > 0 && source.classes() != info.classes) {
      violations.Add("csv.classes", absl::StrCat("is ", source.classes(), ", but the training table has ",
                                                 info.classes, " classes"));
    }
  } else {
    info.classes = source.classes();
  }
  const absl::StatusOr<std::vector<int32_t>> labels =
      TargetClasses(tables.train, info.class_names, info.classes);
  violations.AddAll("csv.train", labels.status());
  if (!labels.ok()) return violations.ToStatus();
  if (info.classes == 0) info.classes = 1 + int64_t{*std::max_element(labels->begin(), labels->end())};
  tables.train_targets = BytesOf(*labels);
  if (!tables.validates) return violations.ToStatus();
  const absl::StatusOr<std::vector<int32_t>> others =
      TargetClasses(tables.validation, info.class_names, info.classes);
  violations.AddAll("csv.validation", others.status());
  if (others.ok()) tables.validation_targets = BytesOf(*others);
  return violations.ToStatus();
}

absl::Status SetValues(const v1::CsvSource& source, Tables& tables, FieldViolations& violations) {
  DatasetInfo& info = tables.info;
  info.target_type = TargetType::kValues;
  info.target_shape = Shape({static_cast<int64_t>(tables.train.columns.targets.size())});
  if (source.classes() != 0) {
    violations.Add("csv.classes",
                   "is given, but the targets are values; leave it out, or give targets: class");
  }
  const auto set = [&](const char* field, const Table& table, std::vector<uint8_t>& bytes) {
    const absl::StatusOr<std::vector<float>> values = TargetValues(table);
    violations.AddAll(field, values.status());
    if (values.ok()) bytes = BytesOf(*values);
  };
  set("csv.train", tables.train, tables.train_targets);
  if (tables.validates) set("csv.validation", tables.validation, tables.validation_targets);
  return violations.ToStatus();
}

absl::StatusOr<Tables> ReadTables(const v1::CsvSource& source) {
  FieldViolations violations;
  Tables tables;
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
  const absl::StatusOr<char> delimiter = DelimiterOf(source);
  violations.AddAll("", delimiter.status());
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  const auto read = [&](const char* field, const std::string& path, const Table* like, Table& table) {
    absl::StatusOr<Table> content = ReadTable(source, path, *delimiter, like);
    // What is wrong with the choice of columns names its own field.
    violations.AddAll(GetFieldViolations(content.status()).empty() ? field : "", content.status());
    if (content.ok()) table = *std::move(content);
  };
  read("csv.train", source.train(), nullptr, tables.train);
  tables.validates = !source.validation().empty();
  if (violations.empty() && tables.validates)
    read("csv.validation", source.validation(), &tables.train, tables.validation);
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());

  DatasetInfo& info = tables.info;
  info.shape = Shape({static_cast<int64_t>(tables.train.columns.features.size())});
  info.sample_type = SampleType::kFloats;
  info.train_samples = static_cast<int64_t>(tables.train.rows.size());
  info.validation_samples = static_cast<int64_t>(tables.validation.rows.size());
  const bool classes = source.targets() == v1::TARGET_KIND_CLASS ||
                       (source.targets() == v1::TARGET_KIND_UNSPECIFIED &&
                        tables.train.columns.targets.size() == 1 && !AllNumbers(tables.train));
  TANDEM_RETURN_IF_ERROR(classes ? SetClasses(source, tables, violations)
                                 : SetValues(source, tables, violations));
  info.memory_bytes = (info.train_samples + info.validation_samples) *
                      (info.shape.elements() + info.target_shape.elements()) *
                      static_cast<int64_t>(sizeof(float));
  return tables;
}

}  // namespace

absl::StatusOr<DatasetInfo> DescribeCsv(const v1::CsvSource& source) {
  TANDEM_ASSIGN_OR_RETURN(Tables tables, ReadTables(source));
  return std::move(tables.info);
}

absl::StatusOr<OpenedDataset> OpenCsv(const v1::CsvSource& source) {
  TANDEM_ASSIGN_OR_RETURN(Tables tables, ReadTables(source));
  OpenedDataset opened;
  opened.info = std::move(tables.info);
  const int64_t sample_bytes = opened.info.shape.elements() * static_cast<int64_t>(sizeof(float));
  const int64_t target_bytes = opened.info.target_shape.elements() * static_cast<int64_t>(sizeof(float));
  opened.train = std::make_unique<MemoryDataset>(sample_bytes, BytesOf(tables.train.features), target_bytes,
                                                 std::move(tables.train_targets));
  if (tables.validates) {
    opened.validation = std::make_unique<MemoryDataset>(sample_bytes, BytesOf(tables.validation.features),
                                                        target_bytes, std::move(tables.validation_targets));
  }
  return opened;
}

absl::StatusOr<std::vector<std::string>> CsvFeatureNames(const v1::CsvSource& source) {
  if (!HasHeader(source)) return std::vector<std::string>();
  TANDEM_ASSIGN_OR_RETURN(const char delimiter, DelimiterOf(source));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<CompressedFile> file, CompressedFile::Open(source.train()));
  std::string text;
  std::vector<std::string> names;
  for (bool whole = false; names.empty();) {
    const size_t before = text.size();
    text.resize(before + kHeaderBytes);
    TANDEM_ASSIGN_OR_RETURN(const int64_t more, file->Read(text.data() + before, kHeaderBytes));
    text.resize(before + more);
    whole = more < kHeaderBytes;
    CsvReader reader(text, delimiter);
    std::vector<absl::string_view> fields;
    const absl::StatusOr<bool> row = reader.Next(&fields);
    if (whole && (!row.ok() || !*row)) return file->Error("has no row that names its columns");
    if (!row.ok() || !*row) continue;
    std::vector<std::string> found = NamesOf(fields, /*header=*/true);
    // Where no other row begins, this one may go on.
    const absl::StatusOr<bool> another = reader.Next(&fields);
    if (whole || (another.ok() && *another)) names = std::move(found);
  }
  TANDEM_ASSIGN_OR_RETURN(const Columns columns, ChooseColumns(source, std::move(names)));
  std::vector<std::string> features;
  for (const size_t column : columns.features) features.push_back(columns.names[column]);
  const std::set<absl::string_view> different(features.begin(), features.end());
  if (different.size() < features.size()) features.clear();
  return features;
}

}  // namespace tandem
