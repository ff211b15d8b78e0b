#ifndef TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_VARIABLES_H_
#define TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_VARIABLES_H_

#include <deque>
#include <string>
#include <vector>

#include "engine/backend/variables.h"

namespace tandem {

// The type in which the reference backend keeps values of `dtype`.
DType ReferenceType(DType dtype);

// Variables as host tensors of ReferenceType.
class ReferenceVariables final : public Variables {
 public:
  std::vector<std::string> names() const override;
  absl::StatusOr<VariableKind> kind(absl::string_view name) const override;
  absl::StatusOr<Tensor> Read(absl::string_view name) const override;
  absl::Status Write(absl::string_view name, const Tensor& value) override;
  absl::Status Clear(absl::string_view name) override;
  absl::StatusOr<BufferView> View(absl::string_view name) override;
  int64_t bytes() const override;

  // That `value`, a variable of a graph, is one of these or none of the name is.
  absl::Status CheckFits(const Value& value) const;
  // The tensor of `value`, made if there is none. It stays where it is.
  Tensor* Place(const Value& value);

 private:
  struct Entry {
    std::string name;
    VariableKind kind;
    DType dtype;
    Tensor tensor;
  };

  const Entry* Find(absl::string_view name) const;
  Entry* Find(absl::string_view name);

  std::deque<Entry> entries_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_VARIABLES_H_
