// Samples of a prediction: pictures, arrays and tables. The first byte chooses the model and the kind of the
// samples.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/image_file.h"
#include "engine/data/formats/test_files.h"
#include "engine/layers/model.h"
#include "engine/training/prediction_input.h"
#include "google/protobuf/text_format.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem {
namespace {

constexpr char kPreparation[] = R"(
  decimal_comma: true
  missing_texts: "-"
  columns {
    name: "age" kind: COLUMN_KIND_NUMBER missing_indicator: true
    numbers { fill: 30 mean: 20 deviation: 10 quantiles: [1, 20, 20, 50] }
  }
  columns { name: "port" kind: COLUMN_KIND_CATEGORY categories: ["C", "S"] category_inputs: 2 }
  columns {
    name: "day" kind: COLUMN_KIND_DATE refuse_missing: true
    numbers { deviation: 1 } numbers { deviation: 1 } numbers { deviation: 1 } numbers { deviation: 1 }
  }
)";

// A model, and the kind of its samples.
struct Task {
  v1::PredictInput::ContentCase content = v1::PredictInput::CONTENT_NOT_SET;
  TrainedModel model;
};

Task MakeTask(v1::PredictInput::ContentCase content, SampleType type, const std::string& network) {
  Task task{.content = content, .model = {}};
  if (!google::protobuf::TextFormat::ParseFromString(network, task.model.spec.mutable_model())) std::abort();
  task.model.trained_on.sample_type = type;
  return task;
}

std::map<char, Task> MakeTasks() {
  std::map<char, Task> tasks;
  Task numbers = MakeTask(v1::PredictInput::kCsv, SampleType::kFloats, "input { shape: 3 }");
  numbers.model.trained_on.feature_names = {"a", "b", "c"};
  numbers.model.trained_on.table =
      TrainedOn::Table{.delimiter = ';', .columns = 4, .feature_positions = {2, 0, 1}};
  tasks['r'] = numbers;
  numbers.content = v1::PredictInput::kNpy;
  tasks['a'] = numbers;
  Task raw = MakeTask(v1::PredictInput::kCsv, SampleType::kFloats, "input { shape: 9 }");
  raw.model.trained_on.feature_names = {"age", "port", "day"};
  raw.model.trained_on.table =
      TrainedOn::Table{.delimiter = ';', .columns = 4, .feature_positions = {0, 2, 3}};
  if (!google::protobuf::TextFormat::ParseFromString(kPreparation,
                                                     &raw.model.trained_on.preparation.emplace())) {
    std::abort();
  }
  tasks['p'] = raw;
  tasks['t'] = MakeTask(v1::PredictInput::kCsv, SampleType::kTokens,
                        "input { shape: 3 } layers { embedding { vocabulary_size: 5 dimension: 2 } }");
  tasks['n'] = MakeTask(v1::PredictInput::kNpy, SampleType::kBytes, "input { shape: [3, 1, 2] }");
  tasks['n'].model.trained_on.layout = v1::ARRAY_LAYOUT_NHWC;
  tasks['i'] = MakeTask(v1::PredictInput::kImage, SampleType::kBytes, "input { shape: [3, 4, 6] }");
  tasks['i'].model.trained_on.resize = v1::IMAGE_RESIZE_PAD;
  tasks['g'] = MakeTask(v1::PredictInput::kImage, SampleType::kBytes, "input { shape: [1, 2, 3] }");
  return tasks;
}

v1::PredictInput InputOf(v1::PredictInput::ContentCase content, absl::string_view bytes) {
  v1::PredictInput input;
  switch (content) {
    case v1::PredictInput::kImage:
      input.set_image(std::string(bytes));
      break;
    case v1::PredictInput::kNpy:
      input.set_npy(std::string(bytes));
      break;
    default:
      input.set_csv(std::string(bytes));
  }
  return input;
}

// Returns whether a picture has so many pixels that it would take the time of many small pictures.
bool IsLarge(const v1::PredictInput& input) {
  if (!input.has_image()) return false;
  const absl::StatusOr<Image> header = ReadImageHeader(input.image());
  return header.ok() && header->height * header->width > (1 << 22);
}

[[noreturn]] void Wrong(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

}  // namespace

std::vector<std::string> Seeds() {
  return {"rb;c;a;y\n2;3;1;dog\n5;6;4;cat\n",
          "ra,b,c\n1, 2.5,-3\r\n\n4,5,6",
          "page;port;day\n15,5;S;2024-05-31\nNA;Q;1.2.1999\n",
          "psep=|\nport|age|day\nS|15|05/31/2024 12:30\nQ|-|2024-05-31\n",
          "p15;yes;S;2024-05-31\n;no;Q;2024-05-31\n",
          "t0,4,2\n",
          "a" + Npy("<f4", "(2, 3)", std::string(24, '\0')),
          "a" + Npy(">f2", "(2, 3)", std::string("\x3c\0\x44\0\x40\0\x45\0\x42\0\x46\0", 12), "True"),
          "n" + Npy("|u1", "(1, 1, 2, 3)", "abcdef"),
          "i" + PixelBmp(),
          "g" + PixelBmp()};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem;  // NOLINT: a target is the program.
  static const auto* const tasks = new std::map<char, Task>(MakeTasks());
  if (size == 0) return 0;
  const auto found = tasks->find(static_cast<char>(data[0]));
  if (found == tasks->end()) return 0;
  const Task& task = found->second;
  const v1::PredictInput input = InputOf(task.content, {reinterpret_cast<const char*>(data) + 1, size - 1});
  if (IsLarge(input)) return 0;
  std::vector<std::string> notices;
  const absl::StatusOr<Tensor> samples = ReadPredictInput(input, task.model, &notices);
  if (!samples.ok()) {
    if (!absl::IsInvalidArgument(samples.status())) Wrong(samples.status().ToString());
    return 0;
  }
  const Shape& shape = samples->shape();
  if (shape.rank() == 0 || shape[0] < 1 || shape != InputShapeOf(task.model.spec.model()).Batched(shape[0])) {
    Wrong(absl::StrCat("samples ", shape.ToString()));
  }
  return 0;
}
