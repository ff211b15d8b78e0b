#include "engine/backends/reference/reference_executable.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// Returns the host's elements of `value` in the backend's type.
Tensor FromHost(const Value& value, const void* elements) {
  Tensor given(value.dtype, value.shape);
  std::memcpy(given.raw_data(), elements, given.bytes());
  return given.CastTo(ReferenceType(value.dtype));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executable>> ReferenceExecutable::Create(const Graph& graph,
                                                                        ReferenceVariables* variables) {
  std::vector<reference::Kernel> kernels;
  for (const Node& node : graph.nodes()) {
    kernels.push_back(reference::FindKernel(node.op->kind()));
    if (kernels.back() == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("the reference backend does not offer the op ", node.op->kind()));
    }
  }
  for (const Value& value : graph.values()) {
    if (value.dtype == DType::kBFloat16 || value.dtype == DType::kFloat16) {
      return absl::UnimplementedError(
          absl::StrCat("the reference backend does not offer ", ToString(value.dtype)));
    }
    if (value.role == ValueRole::kVariable) TANDEM_RETURN_IF_ERROR(variables->CheckFits(value));
  }
  return std::unique_ptr<Executable>(new ReferenceExecutable(graph, std::move(kernels), variables));
}

ReferenceExecutable::ReferenceExecutable(const Graph& graph, std::vector<reference::Kernel> kernels,
                                         ReferenceVariables* variables)
    : graph_(graph), kernels_(std::move(kernels)), tensors_(graph.values().size()) {
  for (const Value& value : graph_.values()) {
    if (value.role == ValueRole::kVariable) {
      tensor_of_.push_back(variables->Place(value));
      continue;
    }
    Tensor& tensor = tensors_[value.id];
    tensor = Tensor(ReferenceType(value.dtype), value.shape);
    if (value.role == ValueRole::kConstant) {
      const Tensor number = Tensor::Of<double>({}, {value.constant}).CastTo(tensor.dtype());
      for (int64_t i = 0; i < tensor.elements(); ++i) {
        std::memcpy(static_cast<std::byte*>(tensor.raw_data()) + i * number.bytes(), number.raw_data(),
                    number.bytes());
      }
    }
    tensor_of_.push_back(&tensor);
  }
}

absl::Status ReferenceExecutable::Run(absl::Span<const void* const> inputs, Communicator* communicator) {
  if (inputs.size() != graph_.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph has ", graph_.inputs().size(), " inputs, not ", inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = graph_.inputs()[i];
    tensors_[id] = FromHost(graph_.value(id), inputs[i]);
  }
  for (const Node& node : graph_.nodes()) {
    reference::KernelCall call = {node, {}, {}, communicator};
    for (const ValueId input : node.inputs) call.inputs.push_back(tensor_of_[input]);
    for (const ValueId output : node.outputs) call.outputs.push_back(tensor_of_[output]);
    TANDEM_RETURN_IF_ERROR(kernels_[node.id](call));
  }
  has_run_ = true;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ReferenceExecutable::Output(int i) const {
  if (i < 0 || i >= static_cast<int>(graph_.outputs().size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph has ", graph_.outputs().size(), " outputs; there is none at ", i));
  }
  if (!has_run_) return absl::FailedPreconditionError("the graph has not run yet");
  const ValueId id = graph_.outputs()[i];
  return tensor_of_[id]->CastTo(graph_.value(id).dtype);
}

int64_t ReferenceExecutable::bytes() const {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors_) bytes += tensor.bytes();
  return bytes;
}

}  // namespace tandem
