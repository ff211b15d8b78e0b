#include "engine/backends/cpu/cpu_variables.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/backends/cpu/transfer.h"
#include "engine/base/status_macros.h"

namespace tandem::cpu {

Layout VariableLayouts::Settle(const std::string& name, const Layout& wanted) {
  MutexLock lock(&mutex_);
  return layouts_.emplace(name, wanted).first->second;
}

absl::StatusOr<const CpuVariables::Variable*> CpuVariables::Find(absl::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.layout == nullptr) {
    return absl::NotFoundError(absl::StrCat("no variable is named \"", name, "\""));
  }
  return &found->second;
}

std::vector<std::string> CpuVariables::names() const {
  std::vector<std::string> names;
  for (const std::string& name : names_) {
    if (layout(name) != nullptr) names.push_back(name);
  }
  return names;
}

absl::StatusOr<VariableKind> CpuVariables::kind(absl::string_view name) const {
  TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
  return variable->kind;
}

absl::StatusOr<Tensor> CpuVariables::Read(absl::string_view name) const {
  TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
  return ToTensor(*variable->layout, variable->memory.data());
}

absl::Status CpuVariables::Write(absl::string_view name, const Tensor& value) {
  TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
  if (value.shape() != variable->shape) {
    return absl::InvalidArgumentError(absl::StrCat("variable \"", name, "\" has the shape ",
                                                   variable->shape.ToString(), ", the value ",
                                                   value.shape().ToString()));
  }
  if (value.dtype() != variable->dtype) {
    return FromTensor(value.CastTo(variable->dtype), *variable->layout, variable->memory.data());
  }
  return FromTensor(value, *variable->layout, variable->memory.data());
}

absl::Status CpuVariables::Clear(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
  std::memset(variable->memory.data(), 0, variable->memory.bytes());
  return absl::OkStatus();
}

absl::StatusOr<BufferView> CpuVariables::View(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
  return BufferView{variable->memory.data(), variable->layout->elements(), variable->dtype};
}

int64_t CpuVariables::bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, variable] : variables_) bytes += variable.memory.bytes();
  return bytes;
}

int64_t CpuVariables::padding_bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, variable] : variables_) {
    if (variable.layout == nullptr) continue;
    bytes += variable.memory.bytes() - variable.shape.elements() * SizeOf(variable.dtype);
  }
  return bytes;
}

absl::Status CpuVariables::Declare(const Value& value) {
  const auto found = variables_.find(value.name);
  if (found == variables_.end()) {
    names_.push_back(value.name);
    variables_[value.name] = {value.variable_kind, value.dtype, value.shape, nullptr, Memory()};
    return absl::OkStatus();
  }
  if (found->second.dtype != value.dtype || found->second.shape != value.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", value.name, "\" is ", ToString(found->second.dtype), found->second.shape.ToString(),
        " already; the graph declares ", ToString(value.dtype), value.shape.ToString()));
  }
  return absl::OkStatus();
}

const Layout* CpuVariables::layout(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : found->second.layout.get();
}

absl::StatusOr<Layout> CpuVariables::Settle(const std::string& name, const Layout& wanted) {
  Variable& variable = variables_.at(name);
  if (variable.layout == nullptr) {
    Layout layout = layouts_->Settle(name, wanted);
    // A set that was created like another set, but for a model with other shapes, keeps its own layout.
    if (layout.shape() != variable.shape || layout.dtype() != variable.dtype) layout = wanted;
    Memory memory = Memory::Allocate(layout.bytes());
    if (memory.data() == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for variable \"", name, "\" of ", layout.bytes(), " bytes"));
    }
    variable.memory = std::move(memory);
    variable.layout = std::make_unique<Layout>(std::move(layout));
  }
  return *variable.layout;
}

void* CpuVariables::data(const std::string& name) const { return variables_.at(name).memory.data(); }

}  // namespace tandem::cpu
