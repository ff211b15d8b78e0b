#ifndef TANDEM_ENGINE_BACKEND_FORWARDING_DEVICE_H_
#define TANDEM_ENGINE_BACKEND_FORWARDING_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/backend/communicator.h"
#include "engine/backend/device.h"
#include "engine/backend/executable.h"
#include "engine/backend/variables.h"
#include "engine/graph/graph.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// Passes calls to another device, for tests. A subclass overrides the calls that it changes. Wait and
// WrapCommunicator are the defaults of Device.
class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  const std::string& name() const override { return inner_->name(); }
  DType dtype() const override { return inner_->dtype(); }
  std::unique_ptr<Variables> CreateVariables(const Variables* like) override {
    return inner_->CreateVariables(like);
  }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, Variables* variables) override {
    return inner_->Compile(graph, variables);
  }

 private:
  const std::unique_ptr<Device> inner_;
};

// Passes calls to another executable, for tests. RunSeveral calls Run for each run.
class ForwardingExecutable : public Executable {
 public:
  explicit ForwardingExecutable(std::unique_ptr<Executable> inner) : inner_(std::move(inner)) {}

  absl::Status Run(absl::Span<const void* const> inputs, Communicator* communicator) override {
    return inner_->Run(inputs, communicator);
  }
  absl::StatusOr<Tensor> Output(int i) const override { return inner_->Output(i); }
  int64_t bytes() const override { return inner_->bytes(); }

 private:
  const std::unique_ptr<Executable> inner_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_FORWARDING_DEVICE_H_
