#include "engine/backends/reference/reference_device.h"

#include <utility>

#include "engine/backends/reference/reference_executable.h"
#include "engine/backends/reference/reference_variables.h"

namespace tandem {
namespace {

class ReferenceDevice final : public Device {
 public:
  explicit ReferenceDevice(std::string name) : name_(std::move(name)) {}

  const std::string& name() const override { return name_; }
  DType dtype() const override { return DType::kFloat64; }

  // There is a single layout.
  std::unique_ptr<Variables> CreateVariables(const Variables* /*like*/) override {
    return std::make_unique<ReferenceVariables>();
  }

  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, Variables* variables) override {
    return ReferenceExecutable::Create(graph, static_cast<ReferenceVariables*>(variables));
  }

 private:
  const std::string name_;
};

}  // namespace

std::unique_ptr<Device> CreateReferenceDevice(std::string name) {
  return std::make_unique<ReferenceDevice>(std::move(name));
}

}  // namespace tandem
