#ifndef TANDEM_TESTS_GOLDEN_PROGRAM_H_
#define TANDEM_TESTS_GOLDEN_PROGRAM_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/device.h"
#include "engine/graph/graph.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// A graph on a device, with its inputs and the initial values of its variables. Floating-point values get the
// device's type, integers become int32.
class Program {
 public:
  // If `like` is given, variables get the layouts of that program.
  explicit Program(std::unique_ptr<Device> device, const Program* like = nullptr);

  Graph& graph() { return graph_; }
  DType dtype() const { return device_->dtype(); }

  ValueId Input(absl::string_view name, const Tensor& value);
  ValueId Variable(absl::string_view name, const Tensor& value, VariableKind kind = VariableKind::kParameter);

  absl::Status Compile();
  // Gives an input of the graph another value.
  void Set(const std::string& name, const Tensor& value);
  absl::Status Run(Communicator* communicator = nullptr);
  // Returns the communicator that Run takes in place of the host's, or null if Run takes the host's. It must
  // not outlive the host's.
  std::unique_ptr<Communicator> WrapCommunicator(Communicator* host) {
    return device_->WrapCommunicator(host);
  }

  // Returns a value that was marked as an output.
  absl::StatusOr<Tensor> Output(ValueId value) const;
  absl::StatusOr<Tensor> Read(absl::string_view variable) const { return variables_->Read(variable); }
  Variables& variables() { return *variables_; }

 private:
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Variables> variables_;
  Graph graph_;
  std::map<std::string, Tensor> values_;  // Values of inputs and variables, in the graph's types.
  std::unique_ptr<Executable> executable_;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_PROGRAM_H_
