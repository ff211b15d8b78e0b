#ifndef TANDEM_ENGINE_BACKENDS_CUDA_CUDA_EXECUTABLE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_CUDA_EXECUTABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/backend/executable.h"
#include "engine/backends/cuda/lowering.h"
#include "engine/backends/cuda/step_order.h"

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

  std::string notice() const override;

 private:
  // Inputs on their way: runs may be so many ahead of the device.
  struct Slot {
    PinnedMemory memory;
    std::unique_ptr<Event> copied;
  };
  struct Slots {
    std::array<Slot, 4> slots;
    size_t next = 0;

    absl::Status Allocate(int64_t bytes);
  };
  // Where the inputs of a run lie on the device, and the run with these. Where there are two, one is filled,
  // in a stream of its own, while the other's run goes on.
  struct Side {
    BudgetedMemory inputs;
    std::vector<std::byte*> buffers;  // By buffer; all but inputs are the same for both.
    std::unique_ptr<Event> read;      // The newest run with these inputs has ended.
    bool is_recorded = false;         // Or it was tried.
    // By segment: of steps for the stream. Empty where it is not recorded.
    std::vector<std::unique_ptr<RecordedWork>> segments;
  };
  // Steps that follow each other and are all for the stream, or one on the host.
  struct Segment {
    size_t begin = 0;
    size_t end = 0;
    bool on_host = false;
  };

  explicit CudaExecutable(std::shared_ptr<DeviceContext> device) : device_(std::move(device)) {}
  absl::Status Plan(Lowering& lowering);
  absl::Status Bind();
  // Gets memory for a second side, where inputs may lie anywhere and are large enough to be worth it.
  absl::Status AddSide();
  // Puts the inputs of so many runs, one behind the other, into `stream`, on their way to `target`. Returns
  // what is reached when they are there.
  absl::StatusOr<const Event*> CopyInputs(int64_t runs, InputsOfRun inputs_of, Slots& slots,
                                          std::byte* target, Stream stream);
  // The same of one run, for what the device's stream is given from now on.
  absl::Status CopyTo(const Side& side, absl::Span<const void* const> inputs);
  absl::Status RunTogether(int64_t runs, InputsOfRun inputs_of);
  absl::Status MakeRows();
  absl::Status RunSteps(const RunContext& context, size_t begin, size_t end);
  absl::Status RunProfiled(const RunContext& context);
  std::vector<MemoryRange> RangesOf(const RunContext& context, const std::vector<Region>& regions) const;
  // Records the steps from `begin` to before `end` of each run. A step waits only for steps that use the same
  // memory.
  absl::StatusOr<std::unique_ptr<RecordedWork>> RecordSteps(absl::Span<const RunContext> runs, size_t begin,
                                                            size_t end);
  void Record(const RunContext& context, Side& side);

  const std::shared_ptr<DeviceContext> device_;
  std::vector<Step> steps_;
  std::vector<int64_t> buffer_bytes_;
  std::vector<Segment> segments_;
  BegunReductions reductions_;
  std::vector<Place> outputs_;
  BudgetedMemory arena_;
  BudgetedMemory constants_;
  std::vector<Side> sides_;  // One or two, which take turns.
  size_t next_side_ = 0;
  Slots slots_;              // Of single runs.
  int64_t input_bytes_ = 0;  // Of a run.
  struct Input {
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  std::vector<Input> input_places_;                  // By input: where in a side's.
  const std::vector<std::byte*>* newest_ = nullptr;  // Of the newest run: by buffer.
  // Whether inputs may lie elsewhere in another run: no step keeps the address of one.
  bool inputs_may_move_ = true;
  // Whether several runs may be given at a time: moreover, nothing happens on the host.
  bool may_run_together_ = true;
  // Inputs of the most runs that are given at a time; empty before the first.
  BudgetedMemory rows_;
  Slots row_slots_;
  std::vector<std::vector<std::byte*>> row_buffers_;           // By run: as Side::buffers.
  std::map<int64_t, std::unique_ptr<RecordedWork>> together_;  // By the number of runs.
  int64_t bytes_ = 0;
  int64_t runs_ = 0;
  // Why runs are not given to the device as wholes; empty where they are, or no second run came yet.
  std::string why_not_recorded_;
  std::vector<std::unique_ptr<Event>> profile_events_;  // Empty where it does not profile.
  std::vector<StepTime> profile_;                       // By step.
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_CUDA_EXECUTABLE_H_
