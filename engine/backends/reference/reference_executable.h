#ifndef TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_EXECUTABLE_H_
#define TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_EXECUTABLE_H_

#include <memory>
#include <vector>

#include "engine/backend/executable.h"
#include "engine/backends/reference/kernel.h"
#include "engine/backends/reference/reference_variables.h"
#include "engine/graph/graph.h"

namespace tandem {

// Computes the nodes of a graph one after the other. Every value has its own tensor.
class ReferenceExecutable final : public Executable {
 public:
  static absl::StatusOr<std::unique_ptr<Executable>> Create(const Graph& graph,
                                                            ReferenceVariables* variables);

  absl::Status Run(absl::Span<const void* const> inputs, Communicator* communicator) override;
  absl::StatusOr<Tensor> Output(int i) const override;
  int64_t bytes() const override;

 private:
  ReferenceExecutable(const Graph& graph, std::vector<reference::Kernel> kernels,
                      ReferenceVariables* variables);

  const Graph graph_;
  const std::vector<reference::Kernel> kernels_;  // By NodeId.
  std::vector<Tensor> tensors_;                   // By ValueId. Unused for variables.
  std::vector<Tensor*> tensor_of_;                // By ValueId.
  bool has_run_ = false;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_EXECUTABLE_H_
