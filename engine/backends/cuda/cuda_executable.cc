#include "engine/backends/cuda/cuda_executable.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/kernels/clear.h"
#include "engine/backends/cuda/transfer.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

// Smaller inputs are copied in the stream of the runs, because a second stream would cost more time.
constexpr int64_t kOverlappedBytes = 1 << 16;
// Larger clears stay in their steps.
constexpr int64_t kMostClearedBytes = 1 << 20;
// The most runs that are launched together. A power of two.
constexpr int64_t kMostTogether = 64;

using Ranges = std::vector<MemoryRange>;

bool Overlaps(const Ranges& ranges, const MemoryRange& other) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const MemoryRange& range) {
    return range.begin < other.end && other.begin < range.end;
  });
}

// A step's work, without the clears with which it began, and its memory. `clears` must be cleared right
// before it.
struct RecordedStep {
  RecordedPart part;
  Ranges clears;
  Ranges reads;
  Ranges writes;
};

// Records the work that `give` puts into the stream.
absl::StatusOr<RecordedPart> RecordOf(Stream stream, absl::FunctionRef<absl::Status()> give) {
  absl::Status status = RecordedWork::Begin(stream);
  if (status.ok()) {
    status = give();
    absl::StatusOr<RecordedPart> part = RecordedWork::EndPart(stream);
    if (status.ok()) status = part.status();
    // A refused kernel is missing in the record.
    if (status.ok()) status = CheckLaunches();
    if (status.ok()) return part;
  }
  (void)CheckLaunches();
  return status;
}

// Returns the addresses of a run whose inputs are in `target` in place of `inputs`.
std::vector<std::byte*> MovedInputs(std::vector<std::byte*> buffers, const BudgetedMemory& inputs,
                                    std::byte* target) {
  for (std::byte*& buffer : buffers) {
    if (inputs.bytes() == 0 || buffer < inputs.data() || buffer >= inputs.data() + inputs.bytes()) continue;
    buffer = target + (buffer - inputs.data());
  }
  return buffers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaExecutable>> CudaExecutable::Create(
    Lowering& lowering, std::shared_ptr<DeviceContext> device) {
  std::unique_ptr<CudaExecutable> executable(new CudaExecutable(std::move(device)));
  TANDEM_RETURN_IF_ERROR(executable->Plan(lowering));
  TANDEM_RETURN_IF_ERROR(executable->Bind());
  return executable;
}

CudaExecutable::~CudaExecutable() {
  // The memory may still be in use. Its next user gets the errors.
  if (!UseDevice(device_->ordinal).ok()) return;
  if (device_->copies != nullptr) (void)device_->copies->Synchronize();
  (void)device_->stream->Synchronize();
}

absl::Status CudaExecutable::Plan(Lowering& lowering) {
  TANDEM_RETURN_IF_ERROR(Take(lowering, /*at_once=*/false));
  TANDEM_ASSIGN_OR_RETURN(ArenaPlan plan, PlanArenaOfSteps(/*shared=*/true));
  TANDEM_ASSIGN_OR_RETURN(ArenaPlan unshared, PlanArenaOfSteps(/*shared=*/false));
  // If there is room, buffers share no memory, so that no step waits for free memory.
  if (unshared.bytes <= lowering.arena_cap()) {
    absl::StatusOr<BudgetedMemory> arena =
        device_->memory.Allocate(&MemoryGroups::activations, unshared.bytes);
    if (!arena.ok() && !absl::IsResourceExhausted(arena.status())) return arena.status();
    if (arena.ok()) {
      arena_ = *std::move(arena);
      plan = std::move(unshared);
    }
  }
  if (arena_.bytes() == 0) {
    TANDEM_ASSIGN_OR_RETURN(arena_, device_->memory.Allocate(&MemoryGroups::activations, plan.bytes));
  }
  places_ = PlaceBuffers(buffers(), plan, CudaBackend::kAlignment);
  const int64_t constant_bytes = places_.constant_bytes;
  TANDEM_ASSIGN_OR_RETURN(constants_, device_->memory.Allocate(&MemoryGroups::data, constant_bytes));
  Side& side = sides_.emplace_back();
  TANDEM_ASSIGN_OR_RETURN(side.inputs, device_->memory.Allocate(&MemoryGroups::data, places_.input_bytes));
  TANDEM_RETURN_IF_ERROR(slots_.Allocate(places_.input_bytes));
  bytes_ = plan.bytes + constant_bytes + places_.input_bytes;

  side.buffers = AddressesOf(buffers(), places_, arena_.data(), constants_.data(), side.inputs.data());
  for (size_t i = 0; i < buffers().size(); ++i) {
    if (side.buffers[i] == nullptr) continue;
    for (const Buffer::Gap& gap : buffers()[i].gaps) {
      TANDEM_RETURN_IF_ERROR(Zero(side.buffers[i] + gap.offset, gap.bytes, device_->stream->get()));
    }
  }
  std::vector<std::byte> constants(constant_bytes);
  TANDEM_RETURN_IF_ERROR(FillConstants(buffers(), places_, constants.data()));
  TANDEM_RETURN_IF_ERROR(Copy(constants_.data(), constants.data(), constant_bytes, device_->stream->get()));
  TANDEM_RETURN_IF_ERROR(device_->stream->Synchronize());
  for (size_t i = 0; i < steps().size(); ++i) {
    if (segments_.empty() || segments_.back().on_host || steps()[i].on_host) {
      segments_.push_back({.begin = i, .on_host = steps()[i].on_host});
    }
    segments_.back().end = i + 1;
    if (steps()[i].on_host) may_run_together_ = false;
    for (const Region& region : steps()[i].bound) {
      if (buffers()[region.buffer].source == Buffer::Source::kInput) inputs_may_move_ = false;
    }
  }
  may_run_together_ = may_run_together_ && inputs_may_move_;
  const char* asked = std::getenv("TANDEM_CUDA_GRAPHS");
  if (asked != nullptr && std::strcmp(asked, "0") == 0) why_not_recorded_ = "TANDEM_CUDA_GRAPHS is 0";
  return AddSide();
}

absl::Status CudaExecutable::AddSide() {
  if (!inputs_may_move_ || places_.input_bytes < kOverlappedBytes) return absl::OkStatus();
  absl::StatusOr<BudgetedMemory> memory = device_->memory.Allocate(&MemoryGroups::data, places_.input_bytes);
  // Without a second side, copies and runs alternate.
  if (absl::IsResourceExhausted(memory.status())) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(memory.status());
  if (device_->copies == nullptr) {
    TANDEM_ASSIGN_OR_RETURN(device_->copies, OwnedStream::Create());
  }
  Side second;
  second.inputs = *std::move(memory);
  second.buffers = MovedInputs(sides_[0].buffers, sides_[0].inputs, second.inputs.data());
  sides_.push_back(std::move(second));
  for (Side& side : sides_) {
    TANDEM_ASSIGN_OR_RETURN(side.read, Event::Create());
  }
  bytes_ += places_.input_bytes;
  return absl::OkStatus();
}

absl::Status CudaExecutable::Bind() {
  const Stream stream = device_->stream->get();
  TANDEM_RETURN_IF_ERROR(BindSteps({{.buffers = sides_[0].buffers.data()}, stream}));
  // Clears nothing. The launch loads the kernel, which must not happen during recording.
  ClearMemory({MemoryRange()}, stream);
  TANDEM_RETURN_IF_ERROR(CheckLaunches());
  return device_->stream->Synchronize();
}

absl::Status CudaExecutable::Slots::Allocate(int64_t bytes) {
  for (Slot& slot : slots) {
    TANDEM_ASSIGN_OR_RETURN(slot.memory, PinnedMemory::Allocate(bytes));
    TANDEM_ASSIGN_OR_RETURN(slot.copied, Event::Create());
  }
  return absl::OkStatus();
}

absl::StatusOr<const Event*> CudaExecutable::CopyInputs(int64_t runs, InputsOfRun inputs_of, Slots& slots,
                                                        std::byte* target, Stream stream) {
  Slot& slot = slots.slots[slots.next];
  slots.next = (slots.next + 1) % slots.slots.size();
  TANDEM_RETURN_IF_ERROR(slot.copied->Synchronize());
  for (int64_t run = 0; run < runs; ++run) {
    const absl::Span<const void* const> inputs = inputs_of(run);
    std::byte* const row = slot.memory.data() + run * places_.input_bytes;
    for (size_t i = 0; i < places_.input_buffers.size(); ++i) {
      const int buffer = places_.input_buffers[i];
      const int64_t bytes = buffers()[buffer].bytes;
      if (bytes > 0) std::memcpy(row + places_.offsets[buffer], inputs[i], bytes);
    }
  }
  if (places_.input_bytes > 0) {
    TANDEM_RETURN_IF_ERROR(Copy(target, slot.memory.data(), runs * places_.input_bytes, stream));
    TANDEM_RETURN_IF_ERROR(slot.copied->Record(stream));
  }
  return slot.copied.get();
}

absl::Status CudaExecutable::CopyTo(const Side& side, absl::Span<const void* const> inputs) {
  const Stream stream = device_->stream->get();
  const auto inputs_of = [&](int64_t) { return inputs; };
  if (sides_.size() == 1) return CopyInputs(1, inputs_of, slots_, side.inputs.data(), stream).status();
  const Stream copies = device_->copies->get();
  TANDEM_RETURN_IF_ERROR(side.read->Hold(copies));
  TANDEM_ASSIGN_OR_RETURN(const Event* copied, CopyInputs(1, inputs_of, slots_, side.inputs.data(), copies));
  return copied->Hold(stream);
}

absl::Status CudaExecutable::RunSteps(const RunContext& context, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    absl::Status status = steps()[i].run(context);
    // A poll of an event, as in a later reduction, would clear the error of a refused kernel.
    if (status.ok() && !steps()[i].on_host) status = CheckLaunches();
    if (!status.ok()) {
      // A communicator's error is passed on unchanged.
      if (steps()[i].on_host) return status;
      if (absl::IsInternal(status)) status = WithFault(std::move(status));
      return absl::Status(status.code(), absl::StrCat(status.message(), " (in \"", steps()[i].name, "\")"));
    }
  }
  return absl::OkStatus();
}

std::vector<MemoryRange> CudaExecutable::RangesOf(const RunContext& context,
                                                  const std::vector<Region>& regions) const {
  std::vector<MemoryRange> ranges;
  for (const Region& region : regions) {
    const std::byte* begin = context.buffers[region.buffer];
    if (begin == nullptr) continue;  // An unused buffer.
    ranges.push_back({begin, begin + buffers()[region.buffer].bytes});
  }
  return ranges;
}

absl::StatusOr<std::unique_ptr<RecordedWork>> CudaExecutable::RecordSteps(absl::Span<const RunContext> runs,
                                                                          size_t begin, size_t end) {
  StepOrder order;
  std::vector<RecordedPart> parts;
  std::vector<std::vector<int>> after;
  const auto add = [&](RecordedPart part, const Ranges& reads, const Ranges& writes) {
    parts.push_back(std::move(part));
    after.push_back(order.Add(reads, writes));
  };
  const auto add_clear = [&](Stream stream, const Ranges& ranges) -> absl::Status {
    if (ranges.empty()) return absl::OkStatus();
    TANDEM_ASSIGN_OR_RETURN(RecordedPart part, RecordOf(stream, [&] {
                              ClearMemory(ranges, stream);
                              return absl::OkStatus();
                            }));
    add(std::move(part), {}, ranges);
    return absl::OkStatus();
  };
  for (const RunContext& run : runs) {
    std::vector<RecordedStep> recorded;
    Ranges used;
    Ranges first;  // What may be cleared at the beginning of the run, in a single launch.
    for (size_t i = begin; i < end; ++i) {
      RecordedStep& step = recorded.emplace_back();
      TANDEM_ASSIGN_OR_RETURN(step.part, RecordOf(run.stream, [&] { return RunSteps(run, i, i + 1); }));
      step.reads = RangesOf(run, steps()[i].reads);
      step.writes = RangesOf(run, steps()[i].writes);
      TANDEM_ASSIGN_OR_RETURN(const Ranges clears, step.part.TakeClears(kMostClearedBytes));
      for (const MemoryRange& range : clears) {
        (Overlaps(used, range) ? step.clears : first).push_back(range);
        step.reads.push_back(range);
      }
      used.insert(used.end(), step.reads.begin(), step.reads.end());
      used.insert(used.end(), step.writes.begin(), step.writes.end());
    }
    TANDEM_RETURN_IF_ERROR(add_clear(run.stream, first));
    for (RecordedStep& step : recorded) {
      TANDEM_RETURN_IF_ERROR(add_clear(run.stream, step.clears));
      add(std::move(step.part), step.reads, step.writes);
    }
  }
  return RecordedWork::Join(parts, after, runs[0].stream);
}

void CudaExecutable::Record(const RunContext& context, Side& side) {
  side.is_recorded = true;
  std::vector<std::unique_ptr<RecordedWork>> recorded(segments_.size());
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    if (segment.on_host) continue;
    absl::StatusOr<std::unique_ptr<RecordedWork>> work = RecordSteps({context}, segment.begin, segment.end);
    if (!work.ok()) {
      // The run can still be launched step by step.
      why_not_recorded_ = std::string(work.status().message());
      return;
    }
    recorded[i] = *std::move(work);
  }
  side.segments = std::move(recorded);
}

std::string CudaExecutable::notice() const {
  if (why_not_recorded_.empty()) return "";
  return absl::StrCat("the GPU is given steps one by one, not as a CUDA graph: ", why_not_recorded_);
}

absl::Status CudaExecutable::RunProfiled(const RunContext& context) {
  TANDEM_RETURN_IF_ERROR(profile_events_[0]->Record(context.stream));
  for (size_t i = 0; i < steps().size(); ++i) {
    TANDEM_RETURN_IF_ERROR(RunSteps(context, i, i + 1));
    TANDEM_RETURN_IF_ERROR(profile_events_[i + 1]->Record(context.stream));
  }
  TANDEM_RETURN_IF_ERROR(device_->stream->Synchronize());
  for (size_t i = 0; i < steps().size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(const double seconds,
                            Event::SecondsBetween(*profile_events_[i], *profile_events_[i + 1]));
    AddTime(i, seconds);
  }
  return absl::OkStatus();
}

absl::Status CudaExecutable::Run(absl::Span<const void* const> inputs, Communicator* communicator) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  // The first run loads kernels, and a load may wait for all work of the process on GPUs. A reduction waits
  // for other ranks. So none may run meanwhile, neither an earlier reduction nor one of this run.
  const bool is_first = runs_ == 0;
  if (is_first) TANDEM_RETURN_IF_ERROR(device_->stream->Synchronize());
  Side& side = sides_[next_side_];
  next_side_ = (next_side_ + 1) % sides_.size();
  TANDEM_RETURN_IF_ERROR(CopyTo(side, inputs));
  const RunContext context = {
      {.buffers = side.buffers.data(), .communicator = communicator, .reductions = &reductions()},
      device_->stream->get()};
  // After a failed run the stream waits for every reduction.
  const absl::Cleanup end = [&] { reductions().End(communicator); };
  ++runs_;
  SetNewest(&side.buffers);
  if (!profile_events_.empty()) {
    TANDEM_RETURN_IF_ERROR(RunProfiled(context));
  } else {
    // In the first run libraries load code, which must not happen during recording.
    if (why_not_recorded_.empty() && runs_ > 1 && !side.is_recorded) Record(context, side);
    for (size_t i = 0; i < segments_.size(); ++i) {
      const bool is_recorded = !side.segments.empty() && side.segments[i] != nullptr;
      TANDEM_RETURN_IF_ERROR(is_recorded ? side.segments[i]->Launch(context.stream)
                                         : RunSteps(context, segments_[i].begin, segments_[i].end));
      if (!is_first || !segments_[i].on_host) continue;
      TANDEM_RETURN_IF_ERROR(reductions().AwaitAll(communicator));
      TANDEM_RETURN_IF_ERROR(device_->stream->Synchronize());
    }
  }
  if (side.read != nullptr) TANDEM_RETURN_IF_ERROR(side.read->Record(context.stream));
  return CheckLaunches();
}

absl::Status CudaExecutable::MakeRows() {
  if (!row_buffers_.empty()) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  const int64_t bytes = kMostTogether * places_.input_bytes;
  TANDEM_ASSIGN_OR_RETURN(BudgetedMemory rows, device_->memory.Allocate(&MemoryGroups::data, bytes));
  Slots slots;
  TANDEM_RETURN_IF_ERROR(slots.Allocate(bytes));
  rows_ = std::move(rows);
  row_slots_ = std::move(slots);
  bytes_ += bytes;
  for (int64_t run = 0; run < kMostTogether; ++run) {
    row_buffers_.push_back(
        MovedInputs(sides_[0].buffers, sides_[0].inputs, rows_.data() + run * places_.input_bytes));
  }
  return absl::OkStatus();
}

absl::Status CudaExecutable::RunTogether(int64_t runs, InputsOfRun inputs_of) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  const Stream stream = device_->stream->get();
  TANDEM_RETURN_IF_ERROR(CopyInputs(runs, inputs_of, row_slots_, rows_.data(), stream).status());
  std::vector<RunContext> contexts;
  for (int64_t run = 0; run < runs; ++run) {
    contexts.push_back({{.buffers = row_buffers_[run].data()}, stream});
  }
  runs_ += runs;
  SetNewest(&row_buffers_[runs - 1]);
  std::unique_ptr<RecordedWork>& work = together_[runs];
  if (work == nullptr && why_not_recorded_.empty()) {
    if (auto recorded = RecordSteps(contexts, 0, steps().size()); recorded.ok()) {
      work = *std::move(recorded);
    } else if (absl::IsResourceExhausted(recorded.status())) {
      may_run_together_ = false;  // The record of a single run needs less memory.
    } else {
      why_not_recorded_ = std::string(recorded.status().message());
    }
  }
  if (work != nullptr) {
    TANDEM_RETURN_IF_ERROR(work->Launch(stream));
  } else {
    for (const RunContext& context : contexts) TANDEM_RETURN_IF_ERROR(RunSteps(context, 0, steps().size()));
  }
  return CheckLaunches();
}

absl::Status CudaExecutable::RunSeveral(int64_t runs, InputsOfRun inputs_of, Communicator* communicator) {
  for (int64_t done = 0; done < runs;) {
    const auto inputs_from = [&](int64_t run) { return inputs_of(done + run); };
    int64_t together = 1;
    // In the first run libraries load code. Profiled runs are launched step by step.
    if (may_run_together_ && runs_ > 0 && profile_events_.empty()) {
      while (2 * together <= std::min(runs - done, kMostTogether)) together *= 2;
    }
    if (together > 1) {
      const absl::Status made = MakeRows();
      if (!made.ok() && !absl::IsResourceExhausted(made)) return made;
      may_run_together_ = made.ok();
      if (!made.ok()) together = 1;
    }
    TANDEM_RETURN_IF_ERROR(together == 1 ? Run(inputs_from(0), communicator)
                                         : RunTogether(together, inputs_from));
    done += together;
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> CudaExecutable::ReadMemory(const Layout& layout, const std::byte* data) const {
  return ReadTensor(layout, data, *device_);
}

absl::Status CudaExecutable::StartProfile() {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  ResetProfile();
  while (profile_events_.size() < steps().size() + 1) {
    TANDEM_ASSIGN_OR_RETURN(profile_events_.emplace_back(), Event::Create(/*timed=*/true));
  }
  return absl::OkStatus();
}

}  // namespace tandem::cuda
