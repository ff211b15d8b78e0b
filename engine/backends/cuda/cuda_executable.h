#ifndef TANDEM_ENGINE_BACKENDS_CUDA_CUDA_EXECUTABLE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_CUDA_EXECUTABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
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
  // Several runs at a time, a power of two of them: one copy to the device and one launch.
  absl::Status RunSeveral(int64_t runs, InputsOfRun inputs_of, Communicator* communicator) override;
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
  // The inputs of runs that are given at a time, one behind the other.
  struct InputRows {
    BudgetedMemory memory;
    std::array<Slot, 4> slots;
    size_t next_slot = 0;

    absl::Status Allocate(MemoryBudget& budget, int64_t bytes);
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
  // The inputs of so many runs on their way to the device.
  absl::Status CopyInputs(int64_t runs, InputsOfRun inputs_of, InputRows& rows);
  absl::Status RunTogether(int64_t runs, InputsOfRun inputs_of);
  absl::Status MakeRows();
  absl::Status RunSteps(const RunContext& context, size_t begin, size_t end);
  absl::Status RunProfiled(const RunContext& context);
  void Record(const RunContext& context);

  const std::shared_ptr<DeviceContext> device_;
  std::vector<Step> steps_;
  std::vector<Segment> segments_;
  std::vector<Place> outputs_;
  BudgetedMemory arena_;
  BudgetedMemory constants_;
  InputRows inputs_;                 // Of one run.
  int64_t input_bytes_ = 0;          // Of a run.
  std::vector<std::byte*> buffers_;  // By buffer.
  struct Input {
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  std::vector<Input> input_places_;  // By input: where in inputs_.
  // Whether several runs may be given at a time: nothing must happen on the host, and no step keeps the
  // address of an input.
  bool may_run_together_ = true;
  InputRows rows_;  // Of the most runs that are given at a time; empty before the first.
  std::vector<std::vector<std::byte*>> row_buffers_;           // By run: as buffers_.
  std::map<int64_t, std::unique_ptr<RecordedWork>> together_;  // By the number of runs.
  int64_t bytes_ = 0;
  int64_t runs_ = 0;
  bool records_ = true;
  bool is_recorded_ = false;  // Single runs; or it was tried.
  std::string why_not_recorded_;
  std::vector<std::unique_ptr<Event>> profile_events_;  // Empty where it does not profile.
  std::vector<StepTime> profile_;                       // By step.
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_CUDA_EXECUTABLE_H_
