#include "engine/backend/device_probe.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/matmul.h"

namespace tandem {
namespace {

constexpr int64_t kRows = 96;
constexpr int64_t kInner = 256;
constexpr int64_t kColumns = 160;
// Several runs, because a device may do its first runs in a different way.
constexpr int kRuns = 4;

// Numbers that are exact in every type of a device. The sums of their products are also exact.
double Small(int64_t i) { return static_cast<double>(i * 7 % 11) - 5; }
// Numbers that use all bits of float32's fraction.
double Pattern(int64_t i) { return static_cast<double>(i * 2654435761 % (1 << 24)); }

template <typename Number>
Tensor Make(DType dtype, Shape shape, const Number& number) {
  Tensor tensor(DType::kFloat64, std::move(shape));
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data<double>()[i] = number(i);
  return tensor.CastTo(dtype);
}

template <typename Number>
absl::Status Compare(const Tensor& found, const char* what, const Number& number) {
  const Tensor numbers = found.CastTo(DType::kFloat64);
  for (int64_t i = 0; i < numbers.elements(); ++i) {
    if (numbers.data<double>()[i] == number(i)) continue;
    return absl::DataLossError(absl::StrCat(what, ": element ", i, " of ", numbers.elements(), " is ",
                                            numbers.data<double>()[i], " where ", number(i), " is right"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ProbeDevice(Device& device, int64_t memory_bytes) {
  const DType dtype = device.dtype();
  Graph graph;
  const ValueId x = graph.AddInput("x", dtype, Shape({kRows, kInner}));
  const ValueId w = graph.AddVariable("w", VariableKind::kParameter, dtype, Shape({kInner, kColumns}));
  graph.AddVariable("memory", VariableKind::kParameter, dtype,
                    Shape({std::max<int64_t>(1, memory_bytes / SizeOf(dtype))}));
  TANDEM_ASSIGN_OR_RETURN(const ValueId y, graph.Add(std::make_shared<MatmulOp>(), {x, w}));
  graph.MarkOutput(y);
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Executable> executable,
                          device.Compile(graph, variables.get()));
  const Tensor input = Make(dtype, Shape({kRows, kInner}), Small);
  TANDEM_RETURN_IF_ERROR(variables->Write("w", Make(dtype, Shape({kInner, kColumns}), Small)));
  TANDEM_RETURN_IF_ERROR(
      variables->Write("memory", Make(dtype, graph.value(graph.FindVariable("memory")).shape, Pattern)));
  std::vector<double> product(kRows * kColumns, 0);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < kInner; ++i) {
      for (int64_t column = 0; column < kColumns; ++column) {
        product[row * kColumns + column] += Small(row * kInner + i) * Small(i * kColumns + column);
      }
    }
  }
  for (int run = 0; run < kRuns; ++run) {
    TANDEM_RETURN_IF_ERROR(executable->Run({input.raw_data()}, nullptr));
    TANDEM_ASSIGN_OR_RETURN(const Tensor output, executable->Output(0));
    TANDEM_RETURN_IF_ERROR(
        Compare(output, "a product of matrices is wrong", [&](int64_t i) { return product[i]; }));
  }
  TANDEM_ASSIGN_OR_RETURN(const Tensor memory, variables->Read("memory"));
  return Compare(memory, "what was written into memory came back changed", Pattern);
}

}  // namespace tandem
