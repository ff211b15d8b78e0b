#include "client/cli/model_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/format.h"
#include "client/cli/table.h"

namespace tandem::cli {

std::string FormatOperations(int64_t operations) {
  if (operations < 1'000'000) return FormatCount(operations);
  double value = static_cast<double>(operations) / 1e6;
  const char* unit = "M";
  for (const char* larger : {"G", "T", "P"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = larger;
  }
  const int decimals = value < 9.995 ? 2 : (value < 99.95 ? 1 : 0);
  return absl::StrFormat("%.*f %s", decimals, value, unit);
}

std::string ModelTable(const v1::ModelDescription& description, bool wide, const Style& style) {
  std::vector<Table::Column> columns = {{"LAYER"}, {"KIND"}};
  if (wide) columns.push_back({"READS"});
  columns.insert(columns.end(), {{"OUTPUT", true},
                                 {"PARAMETERS", true},
                                 {"WEIGHTS", true},
                                 {"OUTPUT MEMORY", true},
                                 {"OPERATIONS", true}});
  Table table(columns);
  for (const v1::LayerDescription& layer : description.layers()) {
    std::vector<std::string> row = {layer.name(), layer.kind()};
    if (wide) row.push_back(absl::StrJoin(layer.inputs(), ", "));
    row.insert(row.end(), {absl::StrJoin(layer.output_shape(), "x"), FormatCount(layer.parameters()),
                           FormatBytes(layer.parameter_bytes()), FormatBytes(layer.output_bytes()),
                           FormatOperations(layer.operations())});
    table.AddRow(std::move(row));
  }
  std::vector<std::string> totals = {"total", ""};
  if (wide) totals.push_back("");
  totals.insert(totals.end(),
                {"", FormatCount(description.parameters()), FormatBytes(description.parameter_bytes()),
                 FormatBytes(description.output_bytes()), FormatOperations(description.operations())});
  table.AddRow(std::move(totals));

  const v1::Model& model = description.model();
  std::string text = absl::StrCat(model.name().empty() ? "model" : model.name(), " of samples ",
                                  absl::StrJoin(model.input().shape(), "x"), "\n", table.Render(style));
  absl::StrAppend(&text, "A batch of ", FormatCount(description.batch_size()), " takes ",
                  FormatBytes(description.inference_memory_bytes()), " forward");
  if (description.training_memory_bytes() > 0) {
    absl::StrAppend(&text, " and ", FormatBytes(description.training_memory_bytes()),
                    " in training, without the optimizer's state");
  }
  return text + ". Memory and operations of layers are of one sample.\n";
}

}  // namespace tandem::cli
