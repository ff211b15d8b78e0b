#ifndef TANDEM_ENGINE_BACKENDS_CUDA_CUDA_EXECUTABLE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_CUDA_EXECUTABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/executable.h"
#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

class CudaExecutable final : public Executable {
 public:
  // Takes over what `lowering` made, plans its memory and gets it.
  static absl::StatusOr<std::unique_ptr<CudaExecutable>> Create(Lowering& lowering,
                                                                std::shared_ptr<DeviceContext> device);
  ~CudaExecutable() override;

  // Returns when the inputs are copied and the work is in the stream; what fails there comes out of a later
  // call, or of Output.
  absl::Status Run(absl::Span<const void* const> inputs, Communicator* communicator) override;
  absl::StatusOr<Tensor> Output(int i) const override;
  int64_t bytes() const override { return bytes_; }

  // What a step took, over all runs since profiling began.
  struct StepTime {
    std::string name;
    int64_t runs = 0;
    double total_seconds = 0;
  };
  // Times every step from now on, each by itself; off at first.
  absl::Status StartProfile();
  const std::vector<StepTime>& profile() const { return profile_; }

  // Why whole runs are not given to the device at once; empty where they are, or no second run came yet.
  const std::string& why_not_recorded() const { return why_not_recorded_; }

 private:
  // Inputs on their way: runs may be so many ahead of the device.
  struct Slot {
    PinnedMemory memory;
    std::unique_ptr<Event> copied;
  };
  // Steps that follow each other and are all for the stream, or one on the host.
  struct Segment {
    size_t begin = 0;
    size_t end = 0;
    bool on_host = false;
    std::unique_ptr<RecordedWork> work;
  };

  explicit CudaExecutable(std::shared_ptr<DeviceContext> device) : device_(std::move(device)) {}
  absl::Status Plan(Lowering& lowering);
  absl::Status Bind();
  absl::Status CopyInputs(absl::Span<const void* const> inputs);
  absl::Status RunSteps(const RunContext& context, size_t begin, size_t end);
  absl::Status RunProfiled(const RunContext& context);
  void Record(const RunContext& context);

  const std::shared_ptr<DeviceContext> device_;
  std::vector<Step> steps_;
  std::vector<Segment> segments_;
  std::vector<Place> outputs_;
  BudgetedMemory arena_;
  BudgetedMemory constants_;
  BudgetedMemory inputs_;
  std::vector<std::byte*> buffers_;  // By buffer.
  struct Input {
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  std::vector<Input> input_places_;  // By input: where in inputs_.
  std::array<Slot, 4> slots_;
  size_t next_slot_ = 0;
  int64_t bytes_ = 0;
  int64_t runs_ = 0;
  bool records_ = true;
  std::string why_not_recorded_;
  std::vector<std::unique_ptr<Event>> profile_events_;  // Empty where it does not profile.
  std::vector<StepTime> profile_;                       // By step.
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_CUDA_EXECUTABLE_H_
