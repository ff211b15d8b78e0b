#include "engine/backends/reference/reference_variables.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

absl::Status NotFound(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no variable \"", name, "\""));
}

}  // namespace

DType ReferenceType(DType dtype) { return IsFloatingPoint(dtype) ? DType::kFloat64 : dtype; }

const ReferenceVariables::Entry* ReferenceVariables::Find(absl::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

ReferenceVariables::Entry* ReferenceVariables::Find(absl::string_view name) {
  return const_cast<Entry*>(std::as_const(*this).Find(name));
}

std::vector<std::string> ReferenceVariables::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

absl::StatusOr<VariableKind> ReferenceVariables::kind(absl::string_view name) const {
  const Entry* entry = Find(name);
  if (entry == nullptr) return NotFound(name);
  return entry->kind;
}

absl::StatusOr<Tensor> ReferenceVariables::Read(absl::string_view name) const {
  const Entry* entry = Find(name);
  if (entry == nullptr) return NotFound(name);
  return entry->tensor.CastTo(entry->dtype);
}

absl::Status ReferenceVariables::Write(absl::string_view name, const Tensor& value) {
  Entry* entry = Find(name);
  if (entry == nullptr) return NotFound(name);
  if (value.shape() != entry->tensor.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("variable \"", name, "\" has the shape ",
                                                   entry->tensor.shape().ToString(), ", not ",
                                                   value.shape().ToString()));
  }
  const Tensor cast = value.CastTo(entry->dtype).CastTo(entry->tensor.dtype());
  std::memcpy(entry->tensor.raw_data(), cast.raw_data(), cast.bytes());
  return absl::OkStatus();
}

absl::Status ReferenceVariables::Clear(absl::string_view name) {
  Entry* entry = Find(name);
  if (entry == nullptr) return NotFound(name);
  std::memset(entry->tensor.raw_data(), 0, entry->tensor.bytes());
  return absl::OkStatus();
}

absl::StatusOr<BufferView> ReferenceVariables::View(absl::string_view name) {
  Entry* entry = Find(name);
  if (entry == nullptr) return NotFound(name);
  return BufferView{entry->tensor.raw_data(), entry->tensor.elements(), entry->tensor.dtype()};
}

int64_t ReferenceVariables::bytes() const {
  int64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.tensor.bytes();
  return bytes;
}

absl::Status ReferenceVariables::CheckFits(const Value& value) const {
  const Entry* entry = Find(value.name);
  if (entry == nullptr) return absl::OkStatus();
  const TensorType there = {entry->dtype, entry->tensor.shape()};
  const TensorType wanted = {value.dtype, value.shape};
  if (there == wanted && entry->kind == value.variable_kind) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("variable \"", value.name, "\" is ", there.ToString(),
                                                 " already and cannot become ", wanted.ToString(),
                                                 there == wanted ? " of another kind" : ""));
}

Tensor* ReferenceVariables::Place(const Value& value) {
  if (Entry* entry = Find(value.name)) return &entry->tensor;
  entries_.push_back(
      {value.name, value.variable_kind, value.dtype, Tensor(ReferenceType(value.dtype), value.shape)});
  return &entries_.back().tensor;
}

}  // namespace tandem
