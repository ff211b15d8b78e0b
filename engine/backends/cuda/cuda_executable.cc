#include "engine/backends/cuda/cuda_executable.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/backend/arena_plan.h"
#include "engine/backends/cuda/transfer.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

constexpr int64_t kAlignment = 256;
// Runs that are given to the device at a time, at most; a power of two.
constexpr int64_t kMostTogether = 64;

int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <typename T>
void Fill(std::byte* memory, int64_t bytes, double number) {
  std::fill_n(reinterpret_cast<T*>(memory), bytes / sizeof(T), static_cast<T>(number));
}

absl::Status FillConstant(const Buffer& buffer, std::byte* memory) {
  switch (buffer.dtype) {
    case DType::kFloat32:
      Fill<float>(memory, buffer.bytes, buffer.constant);
      return absl::OkStatus();
    case DType::kFloat64:
      Fill<double>(memory, buffer.bytes, buffer.constant);
      return absl::OkStatus();
    case DType::kInt32:
      Fill<int32_t>(memory, buffer.bytes, buffer.constant);
      return absl::OkStatus();
    case DType::kInt64:
      Fill<int64_t>(memory, buffer.bytes, buffer.constant);
      return absl::OkStatus();
    case DType::kUInt8:
      Fill<uint8_t>(memory, buffer.bytes, buffer.constant);
      return absl::OkStatus();
    case DType::kBFloat16:
    case DType::kFloat16:
      break;
  }
  return absl::UnimplementedError(absl::StrCat("cuda: a constant of ", ToString(buffer.dtype)));
}

std::vector<int> BuffersOf(const std::vector<Region>& regions) {
  std::vector<int> buffers;
  for (const Region& region : regions) buffers.push_back(region.buffer);
  return buffers;
}

absl::StatusOr<ArenaPlan> PlanArenaOf(Lowering& lowering, const std::vector<Place>& outputs) {
  std::vector<int64_t> bytes;
  for (const Buffer& buffer : lowering.buffers()) {
    bytes.push_back(buffer.source == Buffer::Source::kArena ? Align(buffer.bytes) : -1);
  }
  std::vector<StepUse> uses;
  for (const Step& step : lowering.steps()) {
    uses.push_back({step.name, BuffersOf(step.reads), BuffersOf(step.writes), step.in_place});
  }
  std::vector<int> kept;
  for (const Place& output : outputs) kept.push_back(output.region.buffer);
  return PlanArena(bytes, uses, kept);
}

// What `give` gives the stream, recorded.
absl::StatusOr<std::unique_ptr<RecordedWork>> RecordOf(Stream stream,
                                                       absl::FunctionRef<absl::Status()> give) {
  absl::Status status = RecordedWork::Begin(stream);
  if (status.ok()) {
    status = give();
    absl::StatusOr<std::unique_ptr<RecordedWork>> work = RecordedWork::End(stream);
    if (status.ok()) status = work.status();
    if (status.ok()) return work;
  }
  (void)CheckLaunches();
  return status;
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
  // Its memory may be in use still. What failed there is told to whoever runs it, or reads its results.
  if (UseDevice(device_->ordinal).ok()) (void)device_->stream->Synchronize();
}

absl::Status CudaExecutable::Plan(Lowering& lowering) {
  for (size_t i = 0; i < lowering.graph().outputs().size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(const Place output, lowering.Output(static_cast<int>(i)));
    outputs_.push_back(output);
  }
  TANDEM_ASSIGN_OR_RETURN(const ArenaPlan plan, PlanArenaOf(lowering, outputs_));
  const std::vector<Buffer>& buffers = lowering.buffers();
  input_places_.resize(lowering.graph().inputs().size());
  std::vector<int64_t> offsets(buffers.size(), 0);
  int64_t constant_bytes = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (buffer.source == Buffer::Source::kConstant) {
      offsets[i] = constant_bytes;
      constant_bytes += Align(buffer.bytes);
    } else if (buffer.source == Buffer::Source::kInput) {
      offsets[i] = input_bytes_;
      input_places_[buffer.input] = {input_bytes_, buffer.bytes};
      input_bytes_ += Align(buffer.bytes);
    }
  }
  TANDEM_ASSIGN_OR_RETURN(arena_, device_->memory.Allocate(&MemoryGroups::activations, plan.bytes));
  TANDEM_ASSIGN_OR_RETURN(constants_, device_->memory.Allocate(&MemoryGroups::data, constant_bytes));
  TANDEM_RETURN_IF_ERROR(inputs_.Allocate(device_->memory, input_bytes_));
  bytes_ = plan.bytes + constant_bytes + input_bytes_;

  std::vector<std::byte> constants(constant_bytes);
  buffers_.assign(buffers.size(), nullptr);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    switch (buffer.source) {
      case Buffer::Source::kArena:
        if (plan.offsets[i] >= 0) buffers_[i] = arena_.data() + plan.offsets[i];
        break;
      case Buffer::Source::kInput:
        buffers_[i] = inputs_.memory.data() + offsets[i];
        break;
      case Buffer::Source::kVariable:
        buffers_[i] = buffer.memory;
        break;
      case Buffer::Source::kConstant:
        TANDEM_RETURN_IF_ERROR(FillConstant(buffer, constants.data() + offsets[i]));
        buffers_[i] = constants_.data() + offsets[i];
        break;
    }
  }
  TANDEM_RETURN_IF_ERROR(Copy(constants_.data(), constants.data(), constant_bytes, device_->stream->get()));
  TANDEM_RETURN_IF_ERROR(device_->stream->Synchronize());
  steps_ = std::move(lowering.steps());
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (segments_.empty() || segments_.back().on_host || steps_[i].on_host) {
      segments_.push_back({.begin = i, .on_host = steps_[i].on_host, .work = nullptr});
    }
    segments_.back().end = i + 1;
    if (steps_[i].on_host) may_run_together_ = false;
    for (const Region& region : steps_[i].bound) {
      if (buffers[region.buffer].source == Buffer::Source::kInput) may_run_together_ = false;
    }
  }
  const char* asked = std::getenv("TANDEM_CUDA_GRAPHS");
  records_ = !IsEmulated() && (asked == nullptr || std::strcmp(asked, "0") != 0);
  return absl::OkStatus();
}

absl::Status CudaExecutable::Bind() {
  const RunContext context = {.buffers = buffers_.data(), .stream = device_->stream->get()};
  for (const Step& step : steps_) {
    if (step.bind) TANDEM_RETURN_IF_ERROR(step.bind(context));
  }
  TANDEM_RETURN_IF_ERROR(CheckLaunches());
  return device_->stream->Synchronize();
}

absl::Status CudaExecutable::InputRows::Allocate(MemoryBudget& budget, int64_t bytes) {
  TANDEM_ASSIGN_OR_RETURN(memory, budget.Allocate(&MemoryGroups::data, bytes));
  for (Slot& slot : slots) {
    TANDEM_ASSIGN_OR_RETURN(slot.memory, PinnedMemory::Allocate(bytes));
    TANDEM_ASSIGN_OR_RETURN(slot.copied, Event::Create());
  }
  return absl::OkStatus();
}

absl::Status CudaExecutable::CopyInputs(int64_t runs, InputsOfRun inputs_of, InputRows& rows) {
  Slot& slot = rows.slots[rows.next_slot];
  rows.next_slot = (rows.next_slot + 1) % rows.slots.size();
  TANDEM_RETURN_IF_ERROR(slot.copied->Synchronize());
  for (int64_t run = 0; run < runs; ++run) {
    const absl::Span<const void* const> inputs = inputs_of(run);
    std::byte* const row = slot.memory.data() + run * input_bytes_;
    for (size_t i = 0; i < input_places_.size(); ++i) {
      const Input& place = input_places_[i];
      if (place.bytes > 0) std::memcpy(row + place.offset, inputs[i], place.bytes);
    }
  }
  if (input_bytes_ == 0) return absl::OkStatus();
  const Stream stream = device_->stream->get();
  TANDEM_RETURN_IF_ERROR(Copy(rows.memory.data(), slot.memory.data(), runs * input_bytes_, stream));
  return slot.copied->Record(stream);
}

absl::Status CudaExecutable::RunSteps(const RunContext& context, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (absl::Status status = steps_[i].run(context); !status.ok()) {
      // What a communicator says is passed on as it is.
      if (steps_[i].on_host) return status;
      if (absl::IsInternal(status)) status = WithFault(std::move(status));
      return absl::Status(status.code(), absl::StrCat(status.message(), " (in \"", steps_[i].name, "\")"));
    }
  }
  return absl::OkStatus();
}

void CudaExecutable::Record(const RunContext& context) {
  is_recorded_ = true;
  for (Segment& segment : segments_) {
    if (segment.on_host) continue;
    absl::StatusOr<std::unique_ptr<RecordedWork>> work =
        RecordOf(context.stream, [&] { return RunSteps(context, segment.begin, segment.end); });
    if (work.ok()) {
      segment.work = *std::move(work);
    } else {
      // It can still be given step by step.
      why_not_recorded_ = std::string(work.status().message());
      for (Segment& other : segments_) other.work = nullptr;
      return;
    }
  }
}

absl::Status CudaExecutable::RunProfiled(const RunContext& context) {
  TANDEM_RETURN_IF_ERROR(profile_events_[0]->Record(context.stream));
  for (size_t i = 0; i < steps_.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(RunSteps(context, i, i + 1));
    TANDEM_RETURN_IF_ERROR(profile_events_[i + 1]->Record(context.stream));
  }
  TANDEM_RETURN_IF_ERROR(device_->stream->Synchronize());
  for (size_t i = 0; i < steps_.size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(const double seconds,
                            Event::SecondsBetween(*profile_events_[i], *profile_events_[i + 1]));
    profile_[i].total_seconds += seconds;
    ++profile_[i].runs;
  }
  return absl::OkStatus();
}

absl::Status CudaExecutable::Run(absl::Span<const void* const> inputs, Communicator* communicator) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(CopyInputs(
      1, [&](int64_t) { return inputs; }, inputs_));
  const RunContext context = {
      .buffers = buffers_.data(), .stream = device_->stream->get(), .communicator = communicator};
  ++runs_;
  if (!profile_events_.empty()) return RunProfiled(context);
  // The first run lets libraries load what they must not load while work is recorded.
  if (records_ && runs_ > 1 && !is_recorded_) Record(context);
  for (const Segment& segment : segments_) {
    TANDEM_RETURN_IF_ERROR(segment.work != nullptr ? segment.work->Launch(context.stream)
                                                   : RunSteps(context, segment.begin, segment.end));
  }
  return CheckLaunches();
}

absl::Status CudaExecutable::MakeRows() {
  if (!row_buffers_.empty()) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(rows_.Allocate(device_->memory, kMostTogether * input_bytes_));
  bytes_ += kMostTogether * input_bytes_;
  for (int64_t run = 0; run < kMostTogether; ++run) {
    std::vector<std::byte*>& buffers = row_buffers_.emplace_back(buffers_);
    for (std::byte*& buffer : buffers) {
      const std::byte* const inputs = inputs_.memory.data();
      if (input_bytes_ == 0 || buffer < inputs || buffer >= inputs + input_bytes_) continue;
      buffer = rows_.memory.data() + run * input_bytes_ + (buffer - inputs);
    }
  }
  return absl::OkStatus();
}

absl::Status CudaExecutable::RunTogether(int64_t runs, InputsOfRun inputs_of) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(CopyInputs(runs, inputs_of, rows_));
  const Stream stream = device_->stream->get();
  const auto run_all = [&]() -> absl::Status {
    for (int64_t run = 0; run < runs; ++run) {
      const RunContext context = {.buffers = row_buffers_[run].data(), .stream = stream};
      TANDEM_RETURN_IF_ERROR(RunSteps(context, 0, steps_.size()));
    }
    return absl::OkStatus();
  };
  runs_ += runs;
  std::unique_ptr<RecordedWork>& work = together_[runs];
  if (work == nullptr && records_ && why_not_recorded_.empty()) {
    if (absl::StatusOr<std::unique_ptr<RecordedWork>> recorded = RecordOf(stream, run_all); recorded.ok()) {
      work = *std::move(recorded);
    } else {
      why_not_recorded_ = std::string(recorded.status().message());
    }
  }
  TANDEM_RETURN_IF_ERROR(work != nullptr ? work->Launch(stream) : run_all());
  return CheckLaunches();
}

absl::Status CudaExecutable::RunSeveral(int64_t runs, InputsOfRun inputs_of, Communicator* communicator) {
  for (int64_t done = 0; done < runs;) {
    const auto inputs_from = [&](int64_t run) { return inputs_of(done + run); };
    int64_t together = 1;
    // The first run lets libraries load what they load; one by one is how runs are profiled.
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

absl::StatusOr<Tensor> CudaExecutable::Output(int i) const {
  if (runs_ == 0) return absl::FailedPreconditionError("the executable has not run yet");
  const Place& output = outputs_[i];
  return ReadTensor(output.layout, buffers_[output.region.buffer] + output.region.offset, *device_);
}

absl::Status CudaExecutable::StartProfile() {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  profile_.clear();
  for (const Step& step : steps_) profile_.push_back({.name = step.name});
  while (profile_events_.size() < steps_.size() + 1) {
    TANDEM_ASSIGN_OR_RETURN(profile_events_.emplace_back(), Event::Create(/*timed=*/true));
  }
  return absl::OkStatus();
}

}  // namespace tandem::cuda
