#include "engine/backends/cuda/cuda_variables.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/transfer.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {

Layout VariableLayouts::Settle(const std::string& name, const Layout& wanted) {
  MutexLock lock(&mutex_);
  return layouts_.emplace(name, wanted).first->second;
}

absl::StatusOr<const CudaVariables::Variable*> CudaVariables::Find(absl::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.layout == nullptr) {
    return absl::NotFoundError(absl::StrCat("no variable is named \"", name, "\""));
  }
  return &found->second;
}

std::vector<std::string> CudaVariables::names() const {
  std::vector<std::string> names;
  for (const std::string& name : names_) {
    if (Find(name).ok()) names.push_back(name);
  }
  return names;
}

absl::StatusOr<VariableKind> CudaVariables::kind(absl::string_view name) const {
  TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
  return variable->kind;
}

absl::StatusOr<Tensor> CudaVariables::Read(absl::string_view name) const {
  TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
  return ReadTensor(*variable->layout, variable->memory.data(), *device_);
}

absl::Status CudaVariables::Write(absl::string_view name, const Tensor& value) {
  TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
  if (value.shape() != variable->shape) {
    return absl::InvalidArgumentError(absl::StrCat("variable \"", name, "\" has the shape ",
                                                   variable->shape.ToString(), ", the value ",
                                                   value.shape().ToString()));
  }
  if (value.dtype() != variable->dtype) {
    return WriteTensor(value.CastTo(variable->dtype), *variable->layout, variable->memory.data(), *device_);
  }
  return WriteTensor(value, *variable->layout, variable->memory.data(), *device_);
}

absl::Status CudaVariables::Clear(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  return Zero(variable->memory.data(), variable->memory.bytes(), device_->stream->get());
}

absl::StatusOr<BufferView> CudaVariables::View(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
  return BufferView{variable->memory.data(), variable->layout->elements(), variable->dtype};
}

int64_t CudaVariables::bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, variable] : variables_) bytes += variable.memory.bytes();
  return bytes;
}

absl::Status CudaVariables::Declare(const Value& value) {
  const auto found = variables_.find(value.name);
  if (found == variables_.end()) {
    names_.push_back(value.name);
    variables_[value.name] = {value.variable_kind, value.dtype, value.shape, nullptr, BudgetedMemory()};
    return absl::OkStatus();
  }
  if (found->second.dtype != value.dtype || found->second.shape != value.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", value.name, "\" is ", ToString(found->second.dtype), found->second.shape.ToString(),
        " already; the graph declares ", ToString(value.dtype), value.shape.ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Layout> CudaVariables::Settle(const std::string& name, const Layout& wanted) {
  Variable& variable = variables_.at(name);
  if (variable.layout == nullptr) {
    Layout layout = layouts_->Settle(name, wanted);
    // A set that was created like another set, but for a model with other shapes, keeps its own layout.
    if (layout.shape() != variable.shape || layout.dtype() != variable.dtype) layout = wanted;
    absl::StatusOr<BudgetedMemory> memory =
        device_->memory.Allocate(MemoryGroups::GroupOf(variable.kind), layout.bytes());
    if (!memory.ok()) {
      return absl::Status(memory.status().code(),
                          absl::StrCat("variable \"", name, "\": ", memory.status().message()));
    }
    TANDEM_RETURN_IF_ERROR(Zero(memory->data(), memory->bytes(), device_->stream->get()));
    variable.memory = *std::move(memory);
    variable.layout = std::make_unique<Layout>(std::move(layout));
  }
  return *variable.layout;
}

std::byte* CudaVariables::data(const std::string& name) const { return variables_.at(name).memory.data(); }

}  // namespace tandem::cuda
