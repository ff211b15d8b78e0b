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
#include "engine/backend/lowering/buffer_places.h"
#include "engine/backend/lowering/lowered_executable.h"
#include "engine/backends/cuda/lowering.h"
#include "engine/backends/cuda/step_order.h"

namespace tandem::cuda {

class CudaExecutable final : public LoweredExecutable<CudaBackend> {
 public:
  // Takes the steps and buffers of `lowering`. Plans and allocates the memory.
  static absl::StatusOr<std::unique_ptr<CudaExecutable>> Create(Lowering& lowering,
                                                                std::shared_ptr<DeviceContext> device);
  ~CudaExecutable() override;

  // Returns after the inputs are copied and the work is in the stream. A later call, or Output, returns the
  // errors of that work.
  absl::Status Run(absl::Span<const void* const> inputs, Communicator* communicator) override;
  // Gives the device several runs at a time, a power of two: with a single copy and a single launch.
  absl::Status RunSeveral(int64_t runs, InputsOfRun inputs_of, Communicator* communicator) override;
  int64_t bytes() const override { return bytes_; }

  // Times every step from now on, each separately. Off by default.
  absl::Status StartProfile();

  std::string notice() const override;

 private:
  // Inputs that are being copied. The host may be this number of runs ahead of the device.
  struct Slot {
    PinnedMemory memory;
    std::unique_ptr<Event> copied;
  };
  struct Slots {
    std::array<Slot, 4> slots;
    size_t next = 0;

    absl::Status Allocate(int64_t bytes);
  };
  // The place of a run's inputs on the device, with the recorded run. With two sides, one is filled in a
  // separate stream while the other's run continues.
  struct Side {
    BudgetedMemory inputs;
    std::vector<std::byte*> buffers;  // By buffer. Both sides have the same, except for inputs.
    std::unique_ptr<Event> read;      // The newest run with these inputs has ended.
    bool is_recorded = false;         // Recording was tried.
    // By segment, for segments in the stream. Null if not recorded.
    std::vector<std::unique_ptr<RecordedWork>> segments;
  };
  // Consecutive steps that are all for the stream, or a single step on the host.
  struct Segment {
    size_t begin = 0;
    size_t end = 0;
    bool on_host = false;
  };

  explicit CudaExecutable(std::shared_ptr<DeviceContext> device)
      : LoweredExecutable(device), device_(std::move(device)) {}
  absl::Status Plan(Lowering& lowering);
  absl::Status Bind();
  // Allocates a second side, if inputs may move and are large enough.
  absl::Status AddSide();
  // Copies the inputs of `runs` runs, one after the other, to `target`, in `stream`. Returns the event of the
  // copy's end.
  absl::StatusOr<const Event*> CopyInputs(int64_t runs, InputsOfRun inputs_of, Slots& slots,
                                          std::byte* target, Stream stream);
  // Copies a run's inputs. Later work of the device's stream sees them.
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
  absl::StatusOr<Tensor> ReadMemory(const Layout& layout, const std::byte* data) const override;

  const std::shared_ptr<DeviceContext> device_;
  std::vector<Segment> segments_;
  BudgetedMemory arena_;
  BudgetedMemory constants_;
  std::vector<Side> sides_;  // One or two, used in turns.
  size_t next_side_ = 0;
  Slots slots_;  // Of single runs.
  BufferPlaces places_;
  // Whether inputs may be elsewhere in another run: no step keeps an input's address.
  bool inputs_may_move_ = true;
  // Whether several runs may be launched together: also, no step runs on the host.
  bool may_run_together_ = true;
  // Inputs of the largest number of runs that are launched together. Empty before the first.
  BudgetedMemory rows_;
  Slots row_slots_;
  std::vector<std::vector<std::byte*>> row_buffers_;           // By run, like Side::buffers.
  std::map<int64_t, std::unique_ptr<RecordedWork>> together_;  // By the number of runs.
  int64_t bytes_ = 0;
  int64_t runs_ = 0;
  // Why runs are not launched as a whole. Empty if they are, or before the second run.
  std::string why_not_recorded_;
  std::vector<std::unique_ptr<Event>> profile_events_;  // Empty without profiling.
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_CUDA_EXECUTABLE_H_
