#include "tests/golden/program.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {

Program::Program(std::unique_ptr<Device> device, const Program* like)
    : device_(std::move(device)),
      variables_(device_->CreateVariables(like == nullptr ? nullptr : like->variables_.get())) {}

ValueId Program::Input(absl::string_view name, const Tensor& value) {
  const DType dtype = IsFloatingPoint(value.dtype()) ? device_->dtype() : DType::kInt32;
  values_.emplace(std::string(name), value.CastTo(dtype));
  return graph_.AddInput(name, dtype, value.shape());
}

ValueId Program::Variable(absl::string_view name, const Tensor& value, VariableKind kind) {
  values_.emplace(std::string(name), value.CastTo(device_->dtype()));
  return graph_.AddVariable(name, kind, device_->dtype(), value.shape());
}

absl::Status Program::Compile() {
  TANDEM_ASSIGN_OR_RETURN(executable_, device_->Compile(graph_, variables_.get()));
  for (const ValueId id : graph_.variables()) {
    const auto value = values_.find(graph_.value(id).name);
    if (value == values_.end()) continue;  // Starts at zero.
    TANDEM_RETURN_IF_ERROR(variables_->Write(value->first, value->second));
  }
  return absl::OkStatus();
}

void Program::Set(const std::string& name, const Tensor& value) {
  values_[name] = value.CastTo(graph_.value(graph_.FindInput(name)).dtype);
}

absl::Status Program::Run(Communicator* communicator) {
  std::vector<const void*> inputs;
  for (const ValueId id : graph_.inputs()) {
    const auto value = values_.find(graph_.value(id).name);
    if (value == values_.end()) {
      return absl::FailedPreconditionError(absl::StrCat("input ", graph_.value(id).name, " has no value"));
    }
    if (value->second.shape() != graph_.value(id).shape) {
      return absl::InvalidArgumentError(absl::StrCat("input ", value->first, " has another shape"));
    }
    inputs.push_back(value->second.raw_data());
  }
  return executable_->Run(inputs, communicator);
}

absl::StatusOr<Tensor> Program::Output(ValueId value) const {
  const absl::Span<const ValueId> outputs = graph_.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == value) return executable_->Output(static_cast<int>(i));
  }
  return absl::NotFoundError("the value is no output");
}

}  // namespace tandem
