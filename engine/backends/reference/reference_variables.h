#ifndef TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_VARIABLES_H_
#define TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_VARIABLES_H_

#include <deque>
#include <string>
#include <vector>

#include "engine/backend/variables.h"

namespace tandem {

// Returns the type in which the reference backend keeps values of `dtype`.
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

  // Checks that `value`, a graph's variable, equals the variable of this name, if any.
  absl::Status CheckFits(const Value& value) const;
  // Returns the tensor of `value`, and creates it if necessary. It never moves.
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
