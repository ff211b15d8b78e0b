#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/device_conformance.h"
#include "engine/backend/op_cases.h"
#include "engine/backend/training_case.h"
#include "engine/graph/ops/elementwise.h"

namespace tandem {
namespace {

// Returns a tensor [rows, columns] of whole numbers from `first` upwards.
Tensor Counting(int64_t rows, int64_t columns, double first) {
  Tensor tensor(DType::kFloat64, {rows, columns});
  for (double& number : tensor.data<double>()) number = first++;
  return tensor;
}

// y = relu(weight) for a weight [rows, columns].
CaseGraph ReluOfWeight(DType dtype, int64_t rows, int64_t columns) {
  CaseGraph graph(dtype);
  graph.Add(std::make_shared<ReluOp>(), {graph.Variable("weight", {rows, columns})});
  return graph;
}

// Adds the elements of one view to those of another.
template <typename T>
void AddInto(const BufferView& target, const BufferView& source) {
  for (int64_t i = 0; i < target.elements; ++i) {
    static_cast<T*>(target.data)[i] += static_cast<const T*>(source.data)[i];
  }
}

}  // namespace

TEST_P(DeviceConformance, NewVariablesAreZero) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  EXPECT_TRUE(variables->names().empty());
  const CaseGraph graph = TrainingCase(device->dtype(), 2);
  ASSERT_TRUE(device->Compile(graph.graph(), variables.get()).ok());
  for (const std::string& name : variables->names()) {
    const absl::StatusOr<Tensor> value = variables->Read(name);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(RelativeError(*value, Tensor(value->dtype(), value->shape())), 0) << name;
  }
}

TEST_P(DeviceConformance, VariablesKeepOrderKindsAndTypes) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const CaseGraph graph = TrainingCase(device->dtype(), 2);
  ASSERT_TRUE(device->Compile(graph.graph(), variables.get()).ok());
  // Compiling again changes nothing.
  ASSERT_TRUE(device->Compile(EvaluationCase(device->dtype(), 3).graph(), variables.get()).ok());
  std::vector<std::string> names;
  int64_t bytes = 0;
  for (const ValueId id : graph.graph().variables()) {
    const Value& value = graph.graph().value(id);
    names.push_back(value.name);
    const auto kind = variables->kind(value.name);
    ASSERT_TRUE(kind.ok()) << kind.status();
    EXPECT_EQ(*kind, value.variable_kind) << value.name;
    const auto tensor = variables->Read(value.name);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype(), value.dtype) << value.name;
    EXPECT_EQ(tensor->shape(), value.shape) << value.name;
    bytes += tensor->bytes();
  }
  EXPECT_EQ(variables->names(), names);
  EXPECT_GE(variables->bytes(), bytes);
}

TEST_P(DeviceConformance, VariablesComeBackAsWritten) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const CaseGraph graph = TrainingCase(device->dtype(), 2);
  ASSERT_TRUE(device->Compile(graph.graph(), variables.get()).ok());
  ASSERT_TRUE(WriteVariables(graph, *variables).ok());
  for (const auto& [name, value] : graph.variables()) {
    const absl::StatusOr<Tensor> read = variables->Read(name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(RelativeError(*read, value), 0) << name;
  }
  ASSERT_TRUE(variables->Clear("conv2.weight").ok());
  const Tensor cleared = *variables->Read("conv2.weight");
  EXPECT_EQ(RelativeError(cleared, Tensor(cleared.dtype(), cleared.shape())), 0);
  EXPECT_EQ(RelativeError(*variables->Read("conv1.weight"), graph.variables().at("conv1.weight")), 0);
}

TEST_P(DeviceConformance, VariablesTakeOtherTypes) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  ASSERT_TRUE(device->Compile(ReluOfWeight(device->dtype(), 3, 5).graph(), variables.get()).ok());
  const Tensor numbers = Counting(3, 5, 7);
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kInt32, DType::kInt64, DType::kUInt8}) {
    ASSERT_TRUE(variables->Clear("weight").ok());
    ASSERT_TRUE(variables->Write("weight", numbers.CastTo(dtype)).ok());
    const Tensor read = *variables->Read("weight");
    EXPECT_EQ(read.dtype(), device->dtype());
    EXPECT_EQ(RelativeError(read, numbers), 0) << ToString(dtype);
  }
}

TEST_P(DeviceConformance, VariablesSayWhatIsMissingOrDoesNotFit) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  ASSERT_TRUE(device->Compile(ReluOfWeight(device->dtype(), 3, 5).graph(), variables.get()).ok());
  EXPECT_EQ(variables->Read("bias").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(variables->Write("bias", Counting(3, 5, 0)).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(variables->Clear("bias").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(variables->kind("bias").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(variables->View("bias").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(variables->Write("weight", Counting(5, 3, 0)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device->Compile(ReluOfWeight(device->dtype(), 5, 3).graph(), variables.get()).status().code(),
            absl::StatusCode::kInvalidArgument);
  CaseGraph meter(device->dtype());
  meter.graph().MarkOutput(meter.graph().AddVariable("weight", VariableKind::kMeter, DType::kInt64, {3, 5}));
  EXPECT_EQ(device->Compile(meter.graph(), variables.get()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(DeviceConformance, WritesReachTheNextRun) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const CaseGraph graph = ReluOfWeight(device->dtype(), 3, 5);
  const auto executable = device->Compile(graph.graph(), variables.get());
  ASSERT_TRUE(executable.ok()) << executable.status();
  EXPECT_EQ((*executable)->Output(0).status().code(), absl::StatusCode::kFailedPrecondition);
  for (const double first : {1.0, 100.0}) {
    ASSERT_TRUE(variables->Write("weight", Counting(3, 5, first)).ok());
    const absl::StatusOr<RunResult> result = RunCase(graph, **executable, *variables);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(RelativeError(result->outputs[0], Counting(3, 5, first)), 0);
  }
}

// Two sets with equal layouts can be reduced element by element, in any order of creation and for any
// batches.
TEST_P(DeviceConformance, LikeVariablesHaveLikeLayouts) {
  if (!GetParam().host_memory) return;
  for (const bool like_first : {false, true}) {
    const std::unique_ptr<Device> first = GetParam().make(0);
    const std::unique_ptr<Device> second = GetParam().make(1);
    const std::unique_ptr<Variables> a = first->CreateVariables();
    const std::unique_ptr<Variables> b = second->CreateVariables(a.get());
    const CaseGraph graph_a = TrainingCase(first->dtype(), 8);
    const CaseGraph graph_b = TrainingCase(second->dtype(), 3);
    if (like_first) {
      ASSERT_TRUE(second->Compile(graph_b.graph(), b.get()).ok());
    }
    ASSERT_TRUE(first->Compile(graph_a.graph(), a.get()).ok());
    if (!like_first) {
      ASSERT_TRUE(second->Compile(graph_b.graph(), b.get()).ok());
    }
    ASSERT_TRUE(WriteVariables(graph_a, *a).ok());
    ASSERT_TRUE(WriteVariables(graph_b, *b).ok());
    for (const auto& [name, value] : graph_a.variables()) {
      const absl::StatusOr<BufferView> view_a = a->View(name);
      const absl::StatusOr<BufferView> view_b = b->View(name);
      ASSERT_TRUE(view_a.ok() && view_b.ok()) << view_a.status() << view_b.status();
      ASSERT_EQ(view_a->dtype, view_b->dtype);
      ASSERT_EQ(view_a->elements, view_b->elements);
      ASSERT_GE(view_a->elements, value.elements());
      if (view_a->dtype == DType::kFloat32) {
        AddInto<float>(*view_a, *view_b);
      } else {
        ASSERT_EQ(view_a->dtype, DType::kFloat64);
        AddInto<double>(*view_a, *view_b);
      }
      Tensor doubled = value.CastTo(DType::kFloat64);
      for (double& number : doubled.data<double>()) number *= 2;
      EXPECT_LE(RelativeError(*a->Read(name), doubled), 1e-7) << name;
      EXPECT_EQ(RelativeError(*b->Read(name), value), 0) << name;
    }
  }
}

}  // namespace tandem
