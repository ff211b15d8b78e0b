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
  int64_t input_bytes = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (buffer.source == Buffer::Source::kConstant) {
      offsets[i] = constant_bytes;
      constant_bytes += Align(buffer.bytes);
    } else if (buffer.source == Buffer::Source::kInput) {
      offsets[i] = input_bytes;
      input_places_[buffer.input] = {input_bytes, buffer.bytes};
      input_bytes += Align(buffer.bytes);
    }
  }
  TANDEM_ASSIGN_OR_RETURN(arena_, device_->memory.Allocate(&MemoryGroups::activations, plan.bytes));
  TANDEM_ASSIGN_OR_RETURN(constants_, device_->memory.Allocate(&MemoryGroups::data, constant_bytes));
  TANDEM_ASSIGN_OR_RETURN(inputs_, device_->memory.Allocate(&MemoryGroups::data, input_bytes));
  for (Slot& slot : slots_) {
    TANDEM_ASSIGN_OR_RETURN(slot.memory, PinnedMemory::Allocate(input_bytes));
    TANDEM_ASSIGN_OR_RETURN(slot.copied, Event::Create());
  }
  bytes_ = plan.bytes + constant_bytes + input_bytes;

  std::vector<std::byte> constants(constant_bytes);
  buffers_.assign(buffers.size(), nullptr);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    switch (buffer.source) {
      case Buffer::Source::kArena:
        if (plan.offsets[i] >= 0) buffers_[i] = arena_.data() + plan.offsets[i];
        break;
      case Buffer::Source::kInput:
        buffers_[i] = inputs_.data() + offsets[i];
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

absl::Status CudaExecutable::CopyInputs(absl::Span<const void* const> inputs) {
  if (inputs_.bytes() == 0) return absl::OkStatus();
  Slot& slot = slots_[next_slot_];
  next_slot_ = (next_slot_ + 1) % slots_.size();
  TANDEM_RETURN_IF_ERROR(slot.copied->Synchronize());
  for (size_t i = 0; i < input_places_.size(); ++i) {
    const Input& place = input_places_[i];
    if (place.bytes > 0) std::memcpy(slot.memory.data() + place.offset, inputs[i], place.bytes);
  }
  TANDEM_RETURN_IF_ERROR(Copy(inputs_.data(), slot.memory.data(), inputs_.bytes(), device_->stream->get()));
  return slot.copied->Record(device_->stream->get());
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
  for (Segment& segment : segments_) {
    if (segment.on_host) continue;
    absl::Status status = RecordedWork::Begin(context.stream);
    if (status.ok()) {
      status = RunSteps(context, segment.begin, segment.end);
      absl::StatusOr<std::unique_ptr<RecordedWork>> work = RecordedWork::End(context.stream);
      if (status.ok()) status = work.status();
      if (status.ok()) segment.work = *std::move(work);
    }
    if (!status.ok()) {
      // It can still be given step by step.
      (void)CheckLaunches();
      why_not_recorded_ = std::string(status.message());
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
  TANDEM_RETURN_IF_ERROR(CopyInputs(inputs));
  const RunContext context = {
      .buffers = buffers_.data(), .stream = device_->stream->get(), .communicator = communicator};
  ++runs_;
  if (!profile_events_.empty()) return RunProfiled(context);
  // The first run lets libraries load what they must not load while work is recorded.
  if (records_ && runs_ == 2) Record(context);
  for (const Segment& segment : segments_) {
    TANDEM_RETURN_IF_ERROR(segment.work != nullptr ? segment.work->Launch(context.stream)
                                                   : RunSteps(context, segment.begin, segment.end));
  }
  return CheckLaunches();
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
