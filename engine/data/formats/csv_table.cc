#include "engine/data/formats/csv_table.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/compressed_file.h"
#include "engine/data/formats/csv_reader.h"

namespace tandem {
namespace {

constexpr int64_t kMaxTableBytes = int64_t{4} << 30;
constexpr size_t kShownColumns = 20;
constexpr size_t kMostShown = 2000;
constexpr size_t kMostViolations = 100;

// Returns the positions of the columns that `wanted` names.
template <typename Names>
std::vector<size_t> Find(const Names& wanted, const char* field, const CsvTable& table,
                         FieldViolations& violations) {
  std::vector<size_t> found;
  if (wanted.empty()) return found;
  std::map<absl::string_view, size_t> positions;
  std::set<absl::string_view> twice;
  for (size_t i = 0; i < table.names.size(); ++i) {
    if (!positions.emplace(table.names[i], i).second) twice.insert(table.names[i]);
  }
  std::vector<bool> taken(table.names.size());
  for (int i = 0; i < wanted.size(); ++i) {
    const std::string path = absl::StrCat("csv.", field, "[", i, "]");
    const auto at = positions.find(wanted[i]);
    if (at == positions.end()) {
      std::vector<std::string> shown(table.names.begin(),
                                     table.names.begin() + std::min(kShownColumns, table.names.size()));
      violations.Add(
          path,
          absl::StrCat("is ", QuotedCell(wanted[i]), ", and the table has no such column; it has ",
                       ToUtf8(absl::Utf8SafeCHexEscape(absl::StrJoin(shown, ", ").substr(0, kMostShown))),
                       table.names.size() > kShownColumns ? ", ..." : ""));
    } else if (twice.count(wanted[i]) != 0) {
      violations.Add(path, absl::StrCat("is ", QuotedCell(wanted[i]),
                                        ", and the table has several columns of "
                                        "this name; give them different ones"));
    } else {
      if (taken[at->second]) violations.Add(path, absl::StrCat("is ", QuotedCell(wanted[i]), " again"));
      taken[at->second] = true;
      found.push_back(at->second);
    }
    // The same mistake would repeat.
    if (violations.violations().size() >= kMostViolations) break;
  }
  return found;
}

// Returns the positions of the columns that the model names. A missing column is a fault of `field`.
std::vector<size_t> FindKnown(const std::vector<std::string>& known, const char* field,
                              absl::string_view what, const CsvTable& table, FieldViolations& violations) {
  std::map<absl::string_view, std::vector<size_t>> positions;
  for (size_t i = 0; i < table.names.size(); ++i) positions[table.names[i]].push_back(i);
  std::vector<size_t> found;
  std::vector<std::string> missing;
  for (const std::string& name : known) {
    const std::vector<size_t>& at = positions[name];
    if (at.empty()) {
      missing.push_back(name);
      continue;
    }
    found.push_back(at[0]);
    if (at.size() == 1) continue;
    violations.Add(field, absl::StrCat("cannot be matched to the model: ", table.path, " has ", at.size(),
                                       " columns ", ListNames({name}), "; give them different names"));
    return found;
  }
  if (!missing.empty()) {
    violations.Add(field, absl::StrCat("cannot be matched to the model: ", table.path, " has no column ",
                                       ListNames(missing), ", which is ", what, " of the model; it has ",
                                       ListNames(table.names), "; add the column, or rename its own"));
  }
  return found;
}

// Returns the positions by which a model without names knows its columns: different numbers. Returns nothing
// if the columns have other names.
std::optional<std::vector<size_t>> PositionsIn(const v1::TablePreparation& preparation) {
  std::vector<size_t> positions;
  std::set<size_t> different;
  for (const v1::PreparedColumn& column : preparation.columns()) {
    // No table has so many columns that their positions need more than 32 bits.
    uint32_t position = 0;
    if (!absl::SimpleAtoi(column.name(), &position) || !different.insert(position).second) {
      return std::nullopt;
    }
    positions.push_back(position);
  }
  return positions;
}

// Returns the positions of a prepared model's columns in a table, if the model or the table has no names.
// These are `given`, the positions of the source's features, if there are any. A model without names knows
// its columns by their positions. For another model, the table must have the features of the model alone, and
// the targets behind the features.
std::vector<size_t> FindPlaces(const v1::CsvSource& source, const std::vector<size_t>& given,
                               const DataNames& model, const CsvTable& table, FieldViolations& violations) {
  const auto fault = [&](absl::string_view needs) {
    violations.Add("csv.train", absl::StrCat("cannot be matched to the model by position: ", table.path,
                                             " has ", table.names.size(), " columns, but the model needs ",
                                             needs, "; give a table with names, or the model's columns"));
  };
  const size_t columns = model.preparation->columns_size();
  if (!given.empty()) {
    if (given.size() != columns) {
      violations.Add("csv.feature_columns",
                     absl::StrCat("has ", given.size(), " columns, but the model needs ", columns,
                                  "; give the model's columns"));
    }
    return given;
  }
  if (model.features.empty()) {
    if (std::optional<std::vector<size_t>> known = PositionsIn(*model.preparation); known.has_value()) {
      const size_t needed = known->empty() ? 0 : *std::max_element(known->begin(), known->end()) + 1;
      const bool ends_in_target = source.target_columns().empty();
      if (needed + (ends_in_target ? 1 : 0) > table.names.size()) {
        fault(absl::StrCat(needed, ends_in_target ? " before the target" : ""));
      }
      return *std::move(known);
    }
  }
  std::vector<size_t> found(columns);
  std::iota(found.begin(), found.end(), 0);
  const size_t targets =
      source.target_columns().empty() ? std::max<size_t>(1, model.targets.size()) : table.targets.size();
  if (violations.empty() && found.size() + targets != table.names.size()) {
    fault(absl::StrCat(found.size(), ", and then ",
                       targets == 1 ? "the target" : absl::StrCat(targets, " targets")));
  }
  return found;
}

bool IsAmong(const std::string& name, const google::protobuf::RepeatedPtrField<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns the targets by the model's names, or none if the source's names count.
std::vector<size_t> ChooseKnownTargets(const v1::CsvSource& source, const DataNames& model,
                                       const CsvTable& table, FieldViolations& violations) {
  const auto& given = source.target_columns();
  const bool same = given.size() == static_cast<int>(model.targets.size()) &&
                    std::all_of(model.targets.begin(), model.targets.end(),
                                [&](const std::string& name) { return IsAmong(name, given); });
  const bool known = std::all_of(model.targets.begin(), model.targets.end(), [&](const std::string& name) {
    return std::find(table.names.begin(), table.names.end(), name) != table.names.end();
  });
  if (given.empty() && !known && model.takes_other_outputs) return {};
  if (given.empty() || same) {
    return FindKnown(model.targets, "csv.target_columns", "a target", table, violations);
  }
  // A source that replaces a single target column by another is clear enough.
  if (model.takes_other_outputs || (given.size() == 1 && model.targets.size() == 1)) return {};
  violations.Add("csv.target_columns",
                 absl::StrCat("are ", ListNames({given.begin(), given.end()}),
                              ", but the model's targets are ", ListNames(model.targets), "; give these"));
  return {};
}

// Chooses the columns: those that the model names, else those that the source names. Otherwise the last
// column is the target and the others are features.
absl::Status ChooseColumns(const v1::CsvSource& source, const DataNames& model, CsvTable& table) {
  FieldViolations violations;
  if (table.header && !model.targets.empty()) {
    table.targets = ChooseKnownTargets(source, model, table, violations);
  }
  if (table.targets.empty() && violations.empty()) {
    table.targets = Find(source.target_columns(), "target_columns", table, violations);
    if (source.target_columns().empty()) table.targets = {table.names.size() - 1};
  }
  const std::vector<size_t> given = Find(source.feature_columns(), "feature_columns", table, violations);
  const bool by_model = table.header && !model.features.empty();
  const bool by_place = !by_model && model.preparation.has_value();
  table.features = given;
  if (by_place) {
    table.features = FindPlaces(source, given, model, table, violations);
    const bool by_order = given.empty() && source.target_columns().empty() && !model.features.empty();
    if (by_order && violations.empty()) {
      table.targets.resize(table.names.size() - table.features.size());
      std::iota(table.targets.begin(), table.targets.end(), table.features.size());
    }
  } else if (by_model) {
    table.features = FindKnown(model.features, "csv.feature_columns", "a feature", table, violations);
    for (const std::string& name : model.features) {
      if (given.empty() || IsAmong(name, source.feature_columns())) continue;
      violations.Add("csv.feature_columns", absl::StrCat("leave out ", ListNames({name}),
                                                         ", which is a feature of the model; add it"));
      break;
    }
    if (model.preparation.has_value() &&
        model.features.size() != static_cast<size_t>(model.preparation->columns_size())) {
      violations.Add("csv.train",
                     absl::StrCat("cannot be matched to the model: its file names ", model.features.size(),
                                  " features, but prepares ", model.preparation->columns_size(),
                                  "; the file is damaged, so give another file"));
    }
  }
  std::vector<bool> is_target(table.names.size());
  for (const size_t column : table.targets) is_target[column] = true;
  if (source.feature_columns().empty() && !by_model && !by_place) {
    for (size_t column = 0; column < table.names.size(); ++column) {
      if (!is_target[column]) table.features.push_back(column);
    }
    if (violations.empty() && table.features.empty()) {
      violations.Add("csv.feature_columns", "leave nothing: every column of the table is a target");
    }
  } else if (violations.empty()) {
    for (size_t i = 0; i < table.features.size(); ++i) {
      if (!is_target[table.features[i]]) continue;
      const std::string name = QuotedCell(table.names[table.features[i]]);
      if (by_model) {
        violations.Add(
            "csv.target_columns",
            absl::StrCat("have ", name, ", which is a feature of the model; name the target's column"));
      } else {
        violations.Add(absl::StrCat("csv.feature_columns[", i, "]"),
                       absl::StrCat("is ", name, ", which is a target"));
      }
    }
  }
  return violations.ToStatus();
}

// Returns the names of the columns, from the fields of the first row.
std::vector<std::string> NamesOf(const std::vector<absl::string_view>& fields, bool header) {
  std::vector<std::string> names;
  for (size_t i = 0; i < fields.size(); ++i) {
    names.push_back(header ? NameToUtf8(absl::StripAsciiWhitespace(fields[i])) : absl::StrCat(i));
  }
  return names;
}

// Gives `table` the columns of `like`.
absl::Status TakeColumns(const CsvTable& like, CsvTable& table) {
  table.features = like.features;
  table.targets = like.targets;
  if (table.names == like.names) return absl::OkStatus();
  if (!table.header) {
    return absl::InvalidArgumentError(absl::StrCat(table.path, " has ", table.names.size(), " columns, but ",
                                                   like.path, " has ", like.names.size(),
                                                   "; tables without names must have the same columns"));
  }
  std::map<absl::string_view, std::vector<size_t>> there, here;
  for (size_t i = 0; i < like.names.size(); ++i) there[like.names[i]].push_back(i);
  for (size_t i = 0; i < table.names.size(); ++i) here[table.names[i]].push_back(i);
  for (std::vector<size_t>* columns : {&table.features, &table.targets}) {
    for (size_t& column : *columns) {
      const std::string& name = like.names[column];
      const std::vector<size_t>& found = here[name];
      if (found.size() == 1 && there[name].size() == 1) {
        column = found[0];
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat(table.path, " has other columns than ", like.path, ": it has ",
                       found.empty() ? "no" : absl::StrCat(found.size()), " columns ", ListNames({name}),
                       " in place of ", there[name].size(), "; its columns are ", ListNames(table.names),
                       "; columns are matched by their names, in any order"));
    }
  }
  return absl::OkStatus();
}

// Returns the likely reason that a table has a single column, and the mend, or "".
std::string DelimiterFault(absl::string_view first, char delimiter) {
  const absl::string_view row = absl::StripAsciiWhitespace(first);
  for (const auto& [other, name] : {std::pair(';', "';'"), {'\t', "\"\\t\""}, {'|', "'|'"}, {',', "','"}}) {
    if (other == delimiter || !absl::StrContains(row, other)) continue;
    return absl::StrCat("has a single column ", QuotedCell(row),
                        ", which seems to be several: give csv.delimiter: ", name);
  }
  return "";
}

absl::Status CheckFields(const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields) {
  if (fields.size() == table.names.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      table.path, ": row ", row, " has ", fields.size(), " field", fields.size() == 1 ? "" : "s",
      ", but the table has ", table.names.size(), " columns",
      fields.size() < table.names.size()
          ? absl::StrCat("; column ", QuotedCell(table.names[fields.size()]), " is the first that is missing")
          : ""));
}

// The bytes of the file's beginning that show its form.
constexpr int64_t kFormatBytes = int64_t{1} << 20;

// Finds the form of the file at `path`.
absl::StatusOr<CsvFormat> FormatOf(const v1::CsvSource& source, const std::string& path) {
  TANDEM_RETURN_IF_ERROR(CheckCsvFormat(source));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<CompressedFile> file, CompressedFile::Open(path));
  // Small tables need no large buffer.
  std::string bytes;
  int64_t count = 0;
  for (const int64_t most : {kFormatBytes / 64, kFormatBytes}) {
    bytes.resize(most);
    TANDEM_ASSIGN_OR_RETURN(const int64_t more, file->Read(bytes.data() + count, most - count));
    count += more;
    if (count < most) break;
  }
  bytes.resize(count);
  const v1::TextEncoding encoding = EncodingOf(source, bytes);
  TextDecoder decoder(encoding);
  std::string text;
  if (const absl::Status status = decoder.Decode(bytes, &text); !status.ok()) {
    return file->Error(std::string(status.message()));
  }
  // A piece may end between the two characters of a line's end.
  const bool has_returns = text.find('\r') < text.size() - 1;
  if (has_returns && !absl::StrContains(text, '\n')) {
    return file->Error(
        "ends its lines by carriage returns alone, as old programs did; convert each carriage return "
        "(\\r) to a line feed (\\n)");
  }
  TANDEM_ASSIGN_OR_RETURN(CsvFormat format, FindCsvFormat(source, text, count < kFormatBytes));
  format.encoding = encoding;
  return format;
}

// The rows of a file.
class Rows {
 public:
  static absl::StatusOr<std::unique_ptr<Rows>> Open(const CsvFormat& format, const std::string& path) {
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<CompressedFile> file, CompressedFile::Open(path));
    // A number takes at least two characters of the file. In memory it takes eight bytes while the
    // preparation is computed, and then four.
    const int64_t most = CompressedFile::MostInMemory(kMaxTableBytes, 5);
    TANDEM_RETURN_IF_ERROR(file->CheckPlainLength(most));
    std::unique_ptr<Rows> rows(new Rows(std::move(file), most, format));
    if (format.has_separator_row) TANDEM_RETURN_IF_ERROR(rows->Next().status());
    return rows;
  }
  // As CsvReader::Next.
  absl::StatusOr<bool> Next() {
    absl::StatusOr<bool> more = reader_.Next(&fields_);
    if (more.ok() || has_failed_) return more;
    return absl::InvalidArgumentError(absl::StrCat(file_->path(), ": ", more.status().message()));
  }
  const std::vector<absl::string_view>& fields() const { return fields_; }
  int64_t row() const { return reader_.row(); }
  absl::Status Error(const std::string& what) const { return file_->Error(what); }

 private:
  Rows(std::unique_ptr<CompressedFile> file, int64_t most, const CsvFormat& format)
      : file_(std::move(file)),
        most_(most),
        is_utf8_(format.encoding == v1::TEXT_ENCODING_UTF8),
        decoder_(format.encoding),
        reader_([this](char* data, int64_t size) { return Read(data, size); }, format.syntax) {}

  absl::StatusOr<int64_t> Read(char* data, int64_t size) {
    absl::StatusOr<int64_t> count = is_utf8_ ? ReadBytes(data, size) : ReadText(data, size);
    // The error already names the file.
    has_failed_ = !count.ok();
    return count;
  }
  absl::StatusOr<int64_t> ReadBytes(char* data, int64_t size) {
    absl::StatusOr<int64_t> count = file_->Read(data, size);
    if (count.ok() && (bytes_ += *count) > most_) count = file_->TooLong(most_);
    return count;
  }
  absl::StatusOr<int64_t> ReadText(char* data, int64_t size) {
    std::string bytes(size, '\0');
    bool at_end = false;
    while (static_cast<int64_t>(text_.size()) < size && !at_end) {
      TANDEM_ASSIGN_OR_RETURN(const int64_t count, ReadBytes(bytes.data(), size));
      at_end = count < size;
      absl::Status status = decoder_.Decode(absl::string_view(bytes.data(), count), &text_);
      if (status.ok() && at_end) status = decoder_.Finish();
      if (!status.ok()) return file_->Error(std::string(status.message()));
    }
    const int64_t count = std::min(size, static_cast<int64_t>(text_.size()));
    text_.copy(data, count);
    text_.erase(0, count);
    return count;
  }

  const std::unique_ptr<CompressedFile> file_;
  const int64_t most_;
  const bool is_utf8_;
  TextDecoder decoder_;
  std::string text_;  // Decoded, but not read yet.
  int64_t bytes_ = 0;
  bool has_failed_ = false;
  CsvReader reader_;
  std::vector<absl::string_view> fields_;
};

}  // namespace

std::string CsvPlace(const CsvTable& table, int64_t row, size_t column) {
  return absl::StrCat(table.path, ": row ", row, ", column ", QuotedCell(table.names[column]));
}

namespace {

absl::StatusOr<CsvTable> ReadTable(const v1::CsvSource& source, const CsvFormat& format,
                                   const std::string& path, absl::FunctionRef<absl::Status(CsvTable&)> choose,
                                   UseCsvRow use) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, Rows::Open(format, path));
  TANDEM_ASSIGN_OR_RETURN(bool more, rows->Next());
  if (!more) return rows->Error("has no rows");
  const bool header = format.header;
  if (rows->fields().size() == 1) {
    const std::string fault = DelimiterFault(rows->fields()[0], format.syntax.delimiter);
    if (!fault.empty()) return rows->Error(fault);
  }
  CsvTable table{.path = path,
                 .names = NamesOf(rows->fields(), header),
                 .header = header,
                 .format = format,
                 .rules = {.decimal_comma = format.decimal_comma,
                           .missing_texts = {source.missing_texts().begin(), source.missing_texts().end()}},
                 .features = {},
                 .targets = {}};
  TANDEM_RETURN_IF_ERROR(choose(table));
  if (header) {
    TANDEM_ASSIGN_OR_RETURN(more, rows->Next());
  }
  while (more) {
    TANDEM_RETURN_IF_ERROR(CheckFields(table, rows->row(), rows->fields()));
    TANDEM_RETURN_IF_ERROR(use(table, rows->row(), rows->fields()));
    if (++table.rows > kMaxSamples) return rows->Error("has more rows than can be read");
    TANDEM_ASSIGN_OR_RETURN(more, rows->Next());
  }
  if (table.rows == 0) return rows->Error("has no rows but the one that names its columns");
  return table;
}

}  // namespace

absl::StatusOr<CsvTable> ReadCsvTable(const v1::CsvSource& source, const std::string& path,
                                      const DataNames& model, UseCsvRow use) {
  TANDEM_ASSIGN_OR_RETURN(const CsvFormat format, FormatOf(source, path));
  return ReadTable(
      source, format, path, [&](CsvTable& table) { return ChooseColumns(source, model, table); }, use);
}

absl::StatusOr<CsvTable> ReadCsvTableLike(const v1::CsvSource& source, const std::string& path,
                                          const CsvTable& like, UseCsvRow use) {
  CsvFormat format = like.format;
  if (path != like.path) {
    // The two files may have been written by different programs.
    TANDEM_ASSIGN_OR_RETURN(const CsvFormat own, FormatOf(source, path));
    format.has_separator_row = own.has_separator_row;
    format.encoding = own.encoding;
  }
  return ReadTable(
      source, format, path, [&](CsvTable& table) { return TakeColumns(like, table); }, use);
}

std::vector<std::string> CsvColumnNames(const CsvTable& table, const std::vector<size_t>& positions) {
  std::vector<std::string> names;
  if (!table.header) return names;
  for (const size_t column : positions) names.push_back(table.names[column]);
  const std::set<absl::string_view> different(names.begin(), names.end());
  if (different.size() < names.size()) names.clear();
  return names;
}

absl::Status CsvErrorOf(const char* field, const absl::Status& status) {
  return GetFieldViolations(status).empty() ? UnderField(field, status) : status;
}

}  // namespace tandem
