#ifndef TANDEM_ENGINE_BACKENDS_CUDA_CUDA_VARIABLES_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_CUDA_VARIABLES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "engine/backend/variables.h"
#include "engine/backends/cuda/device_context.h"
#include "engine/backends/cuda/layout.h"
#include "engine/base/mutex.h"

namespace tandem::cuda {

// The layouts of variables, shared by all replicas of a model. The first replica that compiles decides them
// for all. Thread-safe.
class VariableLayouts {
 public:
  // Returns the layout of the variable `name`. It becomes `wanted` if it is not decided yet.
  Layout Settle(const std::string& name, const Layout& wanted);

 private:
  Mutex mutex_;
  std::map<std::string, Layout> layouts_ ABSL_GUARDED_BY(mutex_);
};

class CudaVariables final : public Variables {
 public:
  CudaVariables(std::shared_ptr<DeviceContext> device, std::shared_ptr<VariableLayouts> layouts)
      : device_(std::move(device)), layouts_(std::move(layouts)) {}

  std::vector<std::string> names() const override;
  absl::StatusOr<VariableKind> kind(absl::string_view name) const override;
  absl::StatusOr<Tensor> Read(absl::string_view name) const override;
  absl::Status Write(absl::string_view name, const Tensor& value) override;
  absl::Status Clear(absl::string_view name) override;
  absl::StatusOr<BufferView> View(absl::string_view name) override;
  int64_t bytes() const override;

  const std::shared_ptr<VariableLayouts>& layouts() const { return layouts_; }

  // Adds a graph's variable. INVALID_ARGUMENT if a variable of this name has another type or shape.
  absl::Status Declare(const Value& value);
  // Decides the layout of a declared variable, `wanted` if it is still free, and allocates its memory, which
  // is zero. RESOURCE_EXHAUSTED if there is not enough memory.
  absl::StatusOr<Layout> Settle(const std::string& name, const Layout& wanted);
  // Returns the memory of a settled variable. It never moves.
  std::byte* data(const std::string& name) const;

 private:
  struct Variable {
    VariableKind kind;
    DType dtype;
    Shape shape;
    std::unique_ptr<Layout> layout;  // Null until settled.
    BudgetedMemory memory;
  };
  // NOT_FOUND also for a variable without a layout: the graph that declared it did not compile.
  absl::StatusOr<const Variable*> Find(absl::string_view name) const;

  const std::shared_ptr<DeviceContext> device_;
  const std::shared_ptr<VariableLayouts> layouts_;
  std::vector<std::string> names_;
  std::map<std::string, Variable, std::less<>> variables_;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_CUDA_VARIABLES_H_
