#include "engine/training/prediction_input.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "engine/data/data_names.h"
#include "engine/data/formats/csv_reader.h"
#include "engine/data/formats/image_file.h"
#include "engine/data/formats/npy_array.h"
#include "engine/data/formats/npy_numbers.h"
#include "engine/layers/model.h"
#include "engine/training/prediction_table.h"

namespace tandem {
namespace {

// The most column names in an error.
constexpr size_t kShownNames = 20;

Shape SampleShape(const TrainedModel& model) { return InputShapeOf(model.spec.model()); }

// Returns the largest whole number that a sample may hold.
int64_t LargestNumber(const TrainedModel& model) {
  if (model.trained_on.sample_type == SampleType::kBytes) return std::numeric_limits<uint8_t>::max();
  int64_t largest = std::numeric_limits<int32_t>::max();
  for (const v1::Layer& layer : model.spec.model().layers()) {
    if (layer.has_embedding()) largest = std::min(largest, layer.embedding().vocabulary_size() - 1);
  }
  return largest;
}

// Returns the numbers as samples of the model's type. Checks each number.
absl::StatusOr<Tensor> AsSamples(const std::vector<double>& numbers, const Shape& shape,
                                 const TrainedModel& model) {
  const SampleType type = model.trained_on.sample_type;
  Tensor samples(DTypeOfSamples(type), shape);
  const int64_t largest = LargestNumber(model);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double number = numbers[i];
    if (type == SampleType::kFloats) {
      if (!(std::abs(number) <= std::numeric_limits<float>::max())) {
        return absl::InvalidArgumentError(
            absl::StrCat("has the number ", number, "; numbers must be finite, and at most 3.4e38"));
      }
      samples.data<float>()[i] = static_cast<float>(number);
      continue;
    }
    if (!(number >= 0 && number <= static_cast<double>(largest) && std::floor(number) == number)) {
      return absl::InvalidArgumentError(absl::StrCat("has the number ", number, ", but the model takes ",
                                                     type == SampleType::kBytes ? "bytes" : "tokens",
                                                     ": whole numbers from 0 to ", largest));
    }
    if (type == SampleType::kBytes) {
      samples.data<uint8_t>()[i] = static_cast<uint8_t>(number);
    } else {
      samples.data<int32_t>()[i] = static_cast<int32_t>(number);
    }
  }
  return samples;
}

absl::StatusOr<Tensor> ReadImage(const std::string& file, const TrainedModel& model) {
  const Shape sample = SampleShape(model);
  if (model.trained_on.sample_type == SampleType::kTokens || sample.rank() != 3 ||
      (sample[0] != 1 && sample[0] != 3)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is an image, but the model takes samples ", sample.ToString()));
  }
  if (model.trained_on.sample_type == SampleType::kFloats) {
    return absl::InvalidArgumentError(
        "is an image of bytes, but the model was trained on floats made from images in an unknown way; give "
        "an NPY file made in the same way");
  }
  // Training images that were not resized had all the same size.
  const PictureForm form = {.channels = sample[0],
                            .height = sample[1],
                            .width = sample[2],
                            .resize = model.trained_on.resize.value_or(v1::IMAGE_RESIZE_STRETCH)};
  std::vector<uint8_t> planes(sample.elements());
  TANDEM_RETURN_IF_ERROR(DecodeSample(file, form, planes.data()));
  const std::vector<double> numbers(planes.begin(), planes.end());
  return AsSamples(numbers, sample.Batched(1), model);
}

// Returns the accepted shapes of a sample in an array: first its shape in the training data, then the
// network's.
std::vector<Shape> ArrayShapes(const TrainedModel& model) {
  const Shape sample = SampleShape(model);
  std::vector<Shape> shapes;
  if (sample.rank() == 3 && model.trained_on.layout == v1::ARRAY_LAYOUT_NHWC) {
    shapes.push_back(Shape({sample[1], sample[2], sample[0]}));
  }
  shapes.push_back(sample);
  if (sample.rank() == 3 && sample[0] == 1) shapes.push_back(Shape({sample[1], sample[2]}));
  return shapes;
}

// Brings numbers from [samples, height, width, channels] to [samples, channels, height, width].
std::vector<double> ChannelsFirst(const std::vector<double>& numbers, const Shape& sample) {
  const int64_t channels = sample[0], area = sample[1] * sample[2];
  std::vector<double> moved(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i);
    const int64_t image = at / (channels * area), pixel = at / channels % area, channel = at % channels;
    moved[(image * channels + channel) * area + pixel] = numbers[i];
  }
  return moved;
}

absl::StatusOr<Tensor> ReadArray(const std::string& file, const TrainedModel& model) {
  const Shape sample = SampleShape(model);
  TANDEM_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader("it", file));
  const Shape& shape = header.shape;
  const std::vector<Shape> shapes = ArrayShapes(model);
  const auto fitting = std::find_if(shapes.begin(), shapes.end(), [&](const Shape& wanted) {
    const bool many = shape.rank() == wanted.rank() + 1 && shape[0] > 0 && shape == wanted.Batched(shape[0]);
    return shape == wanted || many;
  });
  if (fitting == shapes.end()) {
    return absl::InvalidArgumentError(absl::StrCat("is an array ", shape.ToString(),
                                                   ", but the model takes samples ", shapes[0].ToString(),
                                                   ", or several with one dimension more"));
  }
  const absl::string_view elements = absl::string_view(file).substr(header.data_at);
  if (shape.elements() != static_cast<int64_t>(elements.size()) / header.item_bytes ||
      elements.size() % header.item_bytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", elements.size(), " bytes of elements, but its header says ", shape.ToString(),
                     " of ", header.item_bytes, " bytes each"));
  }
  std::vector<double> numbers;
  numbers.reserve(shape.elements());
  AddNpyNumbers(header, NativeElements(header, elements), &numbers);
  if (model.trained_on.layout == v1::ARRAY_LAYOUT_NHWC && fitting == shapes.begin() && sample.rank() == 3) {
    numbers = ChannelsFirst(numbers, sample);
  }
  return AsSamples(numbers, sample.Batched(shape == *fitting ? 1 : shape[0]), model);
}

// Returns whether a row names the columns: no cell is a number. A row of names with a number is a mistake.
bool IsHeader(const std::vector<absl::string_view>& cells) {
  double ignored = 0;
  return std::none_of(cells.begin(), cells.end(), [&](absl::string_view cell) {
    return absl::SimpleAtod(absl::StripAsciiWhitespace(cell), &ignored);
  });
}

std::string ColumnName(absl::string_view cell) { return NameToUtf8(absl::StripAsciiWhitespace(cell)); }

// Returns whether a row has all of the model's column names. They may be numbers.
bool HoldsNames(const std::vector<absl::string_view>& cells, const std::vector<std::string>& names) {
  std::set<std::string> held;
  for (const absl::string_view cell : cells) held.insert(ColumnName(cell));
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return held.count(name) > 0; });
}

// Returns the delimiter for messages.
std::string DelimiterText(char delimiter) {
  return delimiter == '\t' ? "a tab" : absl::StrCat("'", absl::CHexEscape(std::string(1, delimiter)), "'");
}

// Returns the positions of the model's columns in a table's first row, by their names.
absl::StatusOr<std::vector<size_t>> FindColumns(const std::vector<absl::string_view>& header, char delimiter,
                                                const std::vector<std::string>& wanted) {
  std::map<std::string, std::vector<size_t>> positions;
  for (size_t i = 0; i < header.size(); ++i) positions[ColumnName(header[i])].push_back(i);
  std::vector<size_t> columns;
  std::vector<std::string> missing;
  for (const std::string& name : wanted) {
    const std::vector<size_t>& found = positions[name];
    if (found.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat("row 1: there are ", found.size(), " columns \"",
                                                     absl::CHexEscape(name.substr(0, 40)), "\""));
    }
    if (!found.empty()) {
      columns.push_back(found[0]);
    } else if (missing.size() < kShownNames) {
      missing.push_back(absl::StrCat("\"", absl::CHexEscape(name.substr(0, 40)), "\""));
    } else if (missing.size() == kShownNames) {
      missing.emplace_back("others");
    }
  }
  if (missing.empty()) return columns;
  return absl::InvalidArgumentError(absl::StrCat(
      "row 1 names no ", missing.size() == 1 ? "column " : "columns ", absl::StrJoin(missing, ", "),
      ", by which the model was trained; columns are matched by "
      "their names, in any order, and are separated by ",
      DelimiterText(delimiter)));
}

absl::StatusOr<Tensor> ReadNamedTable(CsvReader& reader, char delimiter,
                                      const std::vector<absl::string_view>& header,
                                      const TrainedModel& model) {
  const std::vector<std::string>& names = model.trained_on.feature_names;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<size_t> columns, FindColumns(header, delimiter, names));
  const size_t width = header.size();
  std::vector<double> numbers;
  std::vector<absl::string_view> cells;
  int64_t samples = 0;
  while (true) {
    TANDEM_ASSIGN_OR_RETURN(const bool more, reader.Next(&cells));
    if (!more) break;
    const std::string row = absl::StrCat("row ", reader.row());
    if (cells.size() != width) {
      return absl::InvalidArgumentError(
          absl::StrCat(row, " has ", cells.size(), " columns, but the first one names ", width));
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      const absl::string_view cell = cells[columns[i]];
      if (!absl::SimpleAtod(absl::StripAsciiWhitespace(cell), &numbers.emplace_back())) {
        return absl::InvalidArgumentError(
            absl::StrCat(row, ": column \"", absl::CHexEscape(names[i].substr(0, 40)), "\" holds \"",
                         absl::CHexEscape(cell.substr(0, 40)), "\", which is no number"));
      }
    }
    ++samples;
  }
  if (samples == 0) return absl::InvalidArgumentError("has no row of numbers");
  return AsSamples(numbers, SampleShape(model).Batched(samples), model);
}

// Returns the training table's delimiter, or a comma if only a comma splits the first row.
char DelimiterOf(absl::string_view text, const TrainedModel& model) {
  if (!model.trained_on.table.has_value()) return ',';
  const char delimiter = model.trained_on.table->delimiter;
  CsvReader reader(text, delimiter);
  std::vector<absl::string_view> cells;
  const absl::StatusOr<bool> any = reader.Next(&cells);
  const bool is_whole = any.ok() && *any && cells.size() == 1 && SampleShape(model).elements() > 1;
  return is_whole && absl::StrContains(cells[0], ',') ? ',' : delimiter;
}

// Returns the positions of the sample's numbers in a row of `width` cells.
absl::StatusOr<std::vector<size_t>> ColumnsByPosition(size_t width, char delimiter,
                                                      const TrainedModel& model) {
  const Shape sample = SampleShape(model);
  std::vector<size_t> columns(sample.elements());
  std::iota(columns.begin(), columns.end(), 0);
  if (static_cast<int64_t>(width) == sample.elements()) return columns;
  const std::optional<TrainedOn::Table>& table = model.trained_on.table;
  if (table.has_value() && table->columns == static_cast<int64_t>(width) &&
      static_cast<int64_t>(table->feature_positions.size()) == sample.elements()) {
    // A row as in the training table, with its targets.
    return std::vector<size_t>(table->feature_positions.begin(), table->feature_positions.end());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      " has ", width, " columns, but the model takes ", sample.elements(), " numbers a sample, ",
      sample.ToString(),
      table.has_value() ? absl::StrCat(", or the ", table->columns, " of its training table") : "",
      "; columns are separated by ", DelimiterText(delimiter)));
}

absl::StatusOr<Tensor> ReadTable(absl::string_view text, const TrainedModel& model) {
  const Shape sample = SampleShape(model);
  const std::vector<std::string>& names = model.trained_on.feature_names;
  const bool named = static_cast<int64_t>(names.size()) == sample.elements() && sample.elements() > 0;
  const char delimiter = DelimiterOf(text, model);
  std::vector<double> numbers;
  int64_t samples = 0;
  size_t width = 0;  // Of the first sample.
  CsvReader reader(text, delimiter);
  std::vector<absl::string_view> cells;
  while (true) {
    TANDEM_ASSIGN_OR_RETURN(const bool more, reader.Next(&cells));
    if (!more) break;
    const std::string row = absl::StrCat("row ", reader.row());
    if (reader.row() == 1 && ((named && HoldsNames(cells, names)) || IsHeader(cells))) {
      if (named) return ReadNamedTable(reader, delimiter, cells, model);
      continue;
    }
    const absl::StatusOr<std::vector<size_t>> columns = ColumnsByPosition(cells.size(), delimiter, model);
    if (!columns.ok()) return absl::InvalidArgumentError(absl::StrCat(row, columns.status().message()));
    if (samples > 0 && cells.size() != width) {
      return absl::InvalidArgumentError(
          absl::StrCat(row, " has ", cells.size(), " columns, but those before have ", width));
    }
    width = cells.size();
    for (const size_t column : *columns) {
      if (absl::SimpleAtod(absl::StripAsciiWhitespace(cells[column]), &numbers.emplace_back())) continue;
      return absl::InvalidArgumentError(absl::StrCat(row, ": column ", column + 1, " holds \"",
                                                     absl::CHexEscape(cells[column].substr(0, 40)),
                                                     "\", which is no number"));
    }
    ++samples;
  }
  if (samples == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("is read as a table, but has no row of numbers; the model takes rows of ",
                     sample.elements(), " numbers"));
  }
  return AsSamples(numbers, sample.Batched(samples), model);
}

}  // namespace

absl::StatusOr<Tensor> ReadPredictInput(const v1::PredictInput& input, const TrainedModel& model,
                                        std::vector<std::string>* notices) {
  switch (input.content_case()) {
    case v1::PredictInput::kImage:
      return ReadImage(input.image(), model);
    case v1::PredictInput::kNpy:
      if (model.trained_on.preparation.has_value()) {
        return absl::InvalidArgumentError(
            "is an array, but the model prepares the rows of a table; give a CSV table");
      }
      return ReadArray(input.npy(), model);
    case v1::PredictInput::kCsv:
      if (model.trained_on.preparation.has_value()) return ReadPreparedTable(input.csv(), model, notices);
      return ReadTable(input.csv(), model);
    case v1::PredictInput::CONTENT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("has no content");
}

}  // namespace tandem
