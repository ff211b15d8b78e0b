#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/datasets.h"
#include "client/cli/commands/datasets_fetch.h"
#include "client/cli/commands/datasets_pack.h"
#include "client/cli/fact_list.h"
#include "client/cli/format.h"
#include "client/cli/print_table.h"
#include "client/cli/table.h"

namespace tandem::cli {
namespace {

// With more channels or features, only the structured output has their numbers.
// TableColumn.distinct counts up to this number.
constexpr int64_t kMostDistinct = 100'000;
constexpr int kShownNumbers = 16;

// Returns the kind of the source, such as "csv", or "" if unknown.
std::string Source(const v1::Dataset& dataset) {
  const auto* source = dataset.spec().GetDescriptor()->FindOneofByName("source");
  const auto* field = dataset.spec().GetReflection()->GetOneofFieldDescriptor(dataset.spec(), source);
  return field == nullptr ? "" : field->name();
}

// Returns the data set's description, or else its kind and its age.
std::string About(Session& session, const v1::Dataset& dataset) {
  if (!dataset.description().empty() || !dataset.has_create_time()) return dataset.description();
  return absl::StrCat(Source(dataset), ", added ",
                      FormatAge(session.terminal().Now() - FromProto(dataset.create_time())), " ago");
}

int ListDatasets(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  std::vector<Table::Column> columns = {
      {"DATA SET"}, {"SHAPE"}, {"CLASSES", true}, {"TRAIN", true}, {"VALIDATION", true}};
  if (session.wide()) columns.push_back({"LOCATION"});
  columns.push_back({"ABOUT"});
  const auto row = [&session](const v1::Dataset& dataset) {
    std::vector<std::string> cells = {ShortName(dataset.name()), absl::StrJoin(dataset.shape(), "x"),
                                      dataset.classes() > 0 ? absl::StrCat(dataset.classes()) : "-",
                                      FormatCount(dataset.train_samples()),
                                      FormatCount(dataset.validation_samples())};
    if (session.wide()) cells.push_back(dataset.location());
    cells.push_back(dataset.problem().empty() ? About(session, dataset)
                                              : session.style().Red("cannot be used: ") + dataset.problem());
    return cells;
  };
  return PrintTable(
      session, (*client)->ListDatasets(),
      "no data sets; add one with `tandem datasets add`, or put a folder with MNIST's or CIFAR's files into "
      "one of the daemon's data folders\n",
      columns, row);
}

std::string Numbers(const google::protobuf::RepeatedField<double>& numbers) {
  return absl::StrJoin(numbers, ", ",
                       [](std::string* out, double number) { absl::StrAppend(out, FormatMeasure(number)); });
}

// Returns the form of a table's file, such as "comma, header, UTF-8".
std::string FormatText(const v1::TableFormat& format) {
  const std::string& delimiter = format.delimiter();
  std::string text = delimiter == ","    ? "comma"
                     : delimiter == ";"  ? "semicolon"
                     : delimiter == "\t" ? "tab"
                                         : absl::StrCat("'", delimiter, "'");
  absl::StrAppend(&text, format.header() ? ", names in the first row" : ", no names");
  if (!format.quote().empty()) absl::StrAppend(&text, ", quotes ", format.quote());
  if (format.decimal_comma()) absl::StrAppend(&text, ", decimal comma");
  if (!format.comment().empty()) absl::StrAppend(&text, ", comments ", format.comment());
  switch (format.encoding()) {
    case v1::TEXT_ENCODING_UTF16:
      return absl::StrCat(text, ", UTF-16");
    case v1::TEXT_ENCODING_LATIN1:
      return absl::StrCat(text, ", Latin-1");
    default:
      return absl::StrCat(text, ", UTF-8");
  }
}

std::string Facts(const v1::Dataset& dataset, const Style& style, absl::TimeZone zone) {
  FactList facts(style, /*width=*/10);
  facts.Add("data set", style.Bold(ShortName(dataset.name())));
  facts.Add("about", dataset.description());
  if (!dataset.problem().empty()) facts.Add("problem", style.Red("cannot be used: ") + dataset.problem());
  for (const std::string& notice : dataset.notices()) facts.Add("notice", notice);
  facts.Add("source", Source(dataset));
  facts.Add("location", dataset.location());
  facts.Add("owner", dataset.user());
  if (dataset.size_bytes() > 0) facts.Add("uploaded", FormatBytes(dataset.size_bytes()));
  if (dataset.has_create_time()) facts.Add("added", FormatTimestamp(FromProto(dataset.create_time()), zone));
  facts.Add("shape", absl::StrJoin(dataset.shape(), "x"));
  if (dataset.train_samples() > 0) {
    facts.Add("training", absl::StrCat(FormatCount(dataset.train_samples()), " samples"));
    facts.Add("validation", absl::StrCat(FormatCount(dataset.validation_samples()), " samples"));
  }
  if (dataset.target_kind() == v1::TARGET_KIND_VALUES) {
    facts.Add("targets", absl::StrCat("values of shape ", absl::StrJoin(dataset.target_shape(), "x")));
  }
  if (dataset.mean_size() <= kShownNumbers) {
    facts.Add("mean", Numbers(dataset.mean()));
    facts.Add("deviation", Numbers(dataset.standard_deviation()));
  }
  if (dataset.classes() > 0) facts.Add("classes", absl::StrCat(dataset.classes()));
  if (dataset.has_table_format()) facts.Add("format", FormatText(dataset.table_format()));
  return facts.text();
}

absl::string_view KindText(const v1::TableColumn& column) {
  switch (column.kind()) {
    case v1::COLUMN_KIND_NUMBER:
      return "number";
    case v1::COLUMN_KIND_CATEGORY:
      return "category";
    case v1::COLUMN_KIND_DATE:
      return "date";
    case v1::COLUMN_KIND_TEXT:
      return "text, left out";
    default:
      return "ignored";
  }
}

// Returns the columns of a table as a table for people.
std::string Columns(const v1::Dataset& dataset, const Style& style) {
  Table table({{"COLUMN"},
               {"KIND"},
               {"MISSING", true},
               {"DISTINCT", true},
               {"INPUTS", true},
               {"RANGE"},
               {"EXAMPLES"}});
  for (const v1::TableColumn& column : dataset.columns()) {
    const bool is_capped = column.distinct() > kMostDistinct;
    table.AddRow({column.name(), absl::StrCat(column.target() ? "target, " : "", KindText(column)),
                  FormatCount(column.missing()),
                  is_capped ? absl::StrCat(">", FormatCount(kMostDistinct)) : FormatCount(column.distinct()),
                  column.target() ? "" : FormatCount(column.inputs()),
                  column.least().empty() ? "" : absl::StrCat(column.least(), " to ", column.largest()),
                  absl::StrJoin(column.examples(), ", ")});
  }
  return table.Render(style);
}

int Show(Session& session, const std::string& name) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<v1::Dataset> dataset = (*client)->GetDataset(name);
  if (!dataset.ok()) return session.Fail(dataset.status());
  session.MakeShowable(&*dataset);
  if (session.structured()) return session.Print(*dataset);
  session.terminal().Out(Facts(*dataset, session.style(), session.terminal().TimeZone()));
  if (dataset->columns_size() > 0) {
    session.terminal().Out("\n");
    session.terminal().Out(Columns(*dataset, session.style()));
  }
  if (dataset->class_counts_size() == 0) return kSucceeded;
  Table table({{"CLASS", true}, {"TRAINING SAMPLES", true}, {"NAME"}});
  for (int i = 0; i < dataset->class_counts_size(); ++i) {
    table.AddRow({absl::StrCat(i), FormatCount(dataset->class_counts(i)),
                  i < dataset->class_names_size() ? dataset->class_names(i) : ""});
  }
  session.terminal().Out("\n");
  session.terminal().Out(table.Render(session.style()));
  return kSucceeded;
}

}  // namespace

void AddDatasets(Command app, Session& session, int& exit_code) {
  const Command command =
      app.AddCommand("datasets", "List, add, show and remove data sets that jobs can name");
  command.Action([&session, &exit_code] { exit_code = ListDatasets(session); });
  command.AddCommand("list", "List them (the default)").Action([&session, &exit_code] {
    exit_code = ListDatasets(session);
  });
  AddDatasetsFetch(command, session, exit_code);
  const Command show =
      command.AddCommand("show", "Read a whole data set, and show its classes, counts, mean and deviation");
  auto name = std::make_shared<std::string>();
  show.AddOption("SET", *name, "The data set's name").Required();
  show.Action([name, &session, &exit_code] { exit_code = Show(session, *name); });
  AddDatasetsAdd(command, session, exit_code);
  AddDatasetsPack(command, session, exit_code);
  AddDatasetsRemove(command, session, exit_code);
  AddDatasetsUploads(command, session, exit_code);
}

}  // namespace tandem::cli
