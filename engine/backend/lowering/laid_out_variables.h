#ifndef TANDEM_ENGINE_BACKEND_LOWERING_LAID_OUT_VARIABLES_H_
#define TANDEM_ENGINE_BACKEND_LOWERING_LAID_OUT_VARIABLES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "engine/backend/variables.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"

namespace tandem {

// The layouts of variables, shared by all replicas of a model. The first replica that compiles decides them
// for all. Thread-safe.
template <typename Layout>
class VariableLayouts {
 public:
  // Returns the layout of the variable `name`. It becomes `wanted` if it is not decided yet.
  Layout Settle(const std::string& name, const Layout& wanted) {
    MutexLock lock(&mutex_);
    return layouts_.emplace(name, wanted).first->second;
  }

 private:
  Mutex mutex_;
  std::map<std::string, Layout> layouts_ ABSL_GUARDED_BY(mutex_);
};

// Variables in layouts that the lowering of a graph chooses. `Memory` owns a variable's memory: it has
// data(), a std::byte*, and bytes().
template <typename Layout, typename Memory>
class LaidOutVariables : public Variables {
 public:
  // With `like`, a set of the same class, variables get the layouts of `like`. `context` lives at least as
  // long as the variables' memory. May be null.
  explicit LaidOutVariables(const Variables* like, std::shared_ptr<const void> context = nullptr)
      : context_(std::move(context)),
        layouts_(like == nullptr ? std::make_shared<VariableLayouts<Layout>>()
                                 : static_cast<const LaidOutVariables*>(like)->layouts_) {}

  std::vector<std::string> names() const final {
    std::vector<std::string> names;
    for (const std::string& name : names_) {
      if (Find(name).ok()) names.push_back(name);
    }
    return names;
  }
  absl::StatusOr<VariableKind> kind(absl::string_view name) const final {
    TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
    return variable->kind;
  }
  absl::StatusOr<Tensor> Read(absl::string_view name) const final {
    TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
    return ReadMemory(*variable->layout, variable->memory.data());
  }
  absl::Status Write(absl::string_view name, const Tensor& value) final {
    TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
    if (value.shape() != variable->shape) {
      return absl::InvalidArgumentError(absl::StrCat("variable \"", name, "\" has the shape ",
                                                     variable->shape.ToString(), ", the value ",
                                                     value.shape().ToString()));
    }
    if (value.dtype() != variable->dtype) {
      return WriteMemory(value.CastTo(variable->dtype), *variable->layout, variable->memory.data());
    }
    return WriteMemory(value, *variable->layout, variable->memory.data());
  }
  absl::Status Clear(absl::string_view name) final {
    TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
    return ClearMemory(variable->memory.data(), variable->memory.bytes());
  }
  absl::StatusOr<BufferView> View(absl::string_view name) final {
    TANDEM_ASSIGN_OR_RETURN(const Variable* variable, Find(name));
    return BufferView{variable->memory.data(), variable->layout->elements(), variable->dtype};
  }
  int64_t bytes() const final {
    int64_t bytes = 0;
    for (const auto& [name, variable] : variables_) bytes += variable.memory.bytes();
    return bytes;
  }

  // Returns the bytes that the layouts add to the settled variables.
  int64_t padding_bytes() const {
    int64_t bytes = 0;
    for (const auto& [name, variable] : variables_) {
      if (variable.layout == nullptr) continue;
      bytes += variable.memory.bytes() - variable.shape.elements() * SizeOf(variable.dtype);
    }
    return bytes;
  }

  // Adds a graph's variables. INVALID_ARGUMENT if a variable of the same name has another type or shape.
  absl::Status Declare(const Graph& graph) {
    for (const ValueId id : graph.variables()) {
      const Value& value = graph.value(id);
      const auto found = variables_.find(value.name);
      if (found == variables_.end()) {
        names_.push_back(value.name);
        variables_[value.name] = {value.variable_kind, value.dtype, value.shape, nullptr, Memory()};
      } else if (found->second.dtype != value.dtype || found->second.shape != value.shape) {
        return absl::InvalidArgumentError(
            absl::StrCat("variable \"", value.name, "\" is ", ToString(found->second.dtype),
                         found->second.shape.ToString(), " already; the graph declares ",
                         ToString(value.dtype), value.shape.ToString()));
      }
    }
    return absl::OkStatus();
  }
  // Decides the layout of a declared variable, `wanted` if it is still free, and allocates its memory, which
  // is zero. RESOURCE_EXHAUSTED if there is not enough memory.
  absl::StatusOr<Layout> Settle(const std::string& name, const Layout& wanted) {
    Variable& variable = variables_.at(name);
    if (variable.layout == nullptr) {
      Layout layout = layouts_->Settle(name, wanted);
      // A set that was created like another set, but for a model with other shapes, keeps its own layout.
      if (layout.shape() != variable.shape || layout.dtype() != variable.dtype) layout = wanted;
      TANDEM_ASSIGN_OR_RETURN(variable.memory, Allocate(name, variable.kind, layout.bytes()));
      variable.layout = std::make_unique<Layout>(std::move(layout));
    }
    return *variable.layout;
  }
  // Returns the memory of a settled variable. It never moves.
  std::byte* data(const std::string& name) const { return variables_.at(name).memory.data(); }

 private:
  struct Variable {
    VariableKind kind;
    DType dtype;
    Shape shape;
    std::unique_ptr<Layout> layout;  // Null until settled.
    Memory memory;
  };

  // Returns zeroed memory. RESOURCE_EXHAUSTED, with the variable's name, if there is not enough memory.
  virtual absl::StatusOr<Memory> Allocate(const std::string& name, VariableKind kind, int64_t bytes) = 0;
  // Convert between a host tensor and device memory of any layout, with the same type and shape.
  virtual absl::StatusOr<Tensor> ReadMemory(const Layout& layout, const std::byte* data) const = 0;
  virtual absl::Status WriteMemory(const Tensor& value, const Layout& layout, std::byte* data) = 0;
  virtual absl::Status ClearMemory(std::byte* data, int64_t bytes) = 0;

  // NOT_FOUND also for a variable without a layout: the graph that declared it did not compile.
  absl::StatusOr<const Variable*> Find(absl::string_view name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end() || found->second.layout == nullptr) {
      return absl::NotFoundError(absl::StrCat("no variable is named \"", name, "\""));
    }
    return &found->second;
  }

  const std::shared_ptr<const void> context_;
  const std::shared_ptr<VariableLayouts<Layout>> layouts_;
  std::vector<std::string> names_;
  std::map<std::string, Variable, std::less<>> variables_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LOWERING_LAID_OUT_VARIABLES_H_
