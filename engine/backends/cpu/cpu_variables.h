#ifndef TANDEM_ENGINE_BACKENDS_CPU_CPU_VARIABLES_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CPU_VARIABLES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "engine/backend/variables.h"
#include "engine/backends/cpu/layout.h"
#include "engine/backends/cpu/memory.h"
#include "engine/base/mutex.h"

namespace tandem::cpu {

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

class CpuVariables final : public Variables {
 public:
  explicit CpuVariables(std::shared_ptr<VariableLayouts> layouts) : layouts_(std::move(layouts)) {}

  std::vector<std::string> names() const override;
  absl::StatusOr<VariableKind> kind(absl::string_view name) const override;
  absl::StatusOr<Tensor> Read(absl::string_view name) const override;
  absl::Status Write(absl::string_view name, const Tensor& value) override;
  absl::Status Clear(absl::string_view name) override;
  absl::StatusOr<BufferView> View(absl::string_view name) override;
  int64_t bytes() const override;

  const std::shared_ptr<VariableLayouts>& layouts() const { return layouts_; }

  // Returns the bytes that the layouts add to the settled variables.
  int64_t padding_bytes() const;
  // The bytes that the executables of these variables take beyond their graphs' plans. Each executable adds
  // its bytes, and subtracts them in its destructor.
  const std::shared_ptr<int64_t>& workspace_bytes() const { return workspace_bytes_; }

  // Adds a graph's variable. INVALID_ARGUMENT if a variable of this name has another type or shape.
  absl::Status Declare(const Value& value);
  // Returns the layout of a declared variable, or null before Settle.
  const Layout* layout(const std::string& name) const;
  // Decides the layout of a declared variable, `wanted` if it is still free, and allocates its memory.
  // RESOURCE_EXHAUSTED if there is not enough memory.
  absl::StatusOr<Layout> Settle(const std::string& name, const Layout& wanted);
  // Returns the memory of a settled variable. It never moves.
  void* data(const std::string& name) const;

 private:
  struct Variable {
    VariableKind kind;
    DType dtype;
    Shape shape;
    std::unique_ptr<Layout> layout;  // Null until settled.
    Memory memory;
  };
  // NOT_FOUND also for a variable without a layout: the graph that declared it did not compile.
  absl::StatusOr<const Variable*> Find(absl::string_view name) const;

  const std::shared_ptr<VariableLayouts> layouts_;
  const std::shared_ptr<int64_t> workspace_bytes_ = std::make_shared<int64_t>(0);
  std::vector<std::string> names_;
  std::map<std::string, Variable, std::less<>> variables_;
};

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_CPU_VARIABLES_H_
