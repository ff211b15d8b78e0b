#include "engine/backends/cpu/cpu_executable.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/backends/cpu/transfer.h"
#include "engine/base/status_macros.h"
#include "engine/graph/memory_plan.h"

namespace tandem::cpu {
namespace {

constexpr int64_t kAlignment = 64;

int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Stands for a step in the graph of buffers that the memory is planned by.
class StepOp final : public Op {
 public:
  StepOp(std::vector<TensorType> outputs, std::vector<std::pair<int, int>> in_place)
      : outputs_(std::move(outputs)), in_place_(std::move(in_place)) {}
  absl::string_view kind() const override { return "step"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType>) const override {
    return outputs_;
  }
  std::vector<std::pair<int, int>> InPlace() const override { return in_place_; }

 private:
  const std::vector<TensorType> outputs_;
  const std::vector<std::pair<int, int>> in_place_;
};

// Offsets of the arena's buffers; -1 for the others.
struct ArenaPlan {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

absl::StatusOr<ArenaPlan> PlanArena(Lowering& lowering, const std::vector<Place>& outputs) {
  const std::vector<Buffer>& buffers = lowering.buffers();
  const auto in_arena = [&](int buffer) { return buffers[buffer].source == Buffer::Source::kArena; };
  Graph graph;
  std::vector<ValueId> values(buffers.size(), kNoValue);
  for (const Step& step : lowering.steps()) {
    std::vector<ValueId> inputs;
    std::vector<TensorType> types;
    std::vector<int> made;
    std::vector<int> read_positions(step.reads.size(), -1);
    std::vector<int> write_positions(step.writes.size(), -1);
    for (size_t i = 0; i < step.reads.size(); ++i) {
      const int buffer = step.reads[i].buffer;
      if (!in_arena(buffer)) continue;
      if (values[buffer] == kNoValue) {
        return absl::InternalError(absl::StrCat("step \"", step.name, "\" reads what no step has written"));
      }
      read_positions[i] = static_cast<int>(inputs.size());
      inputs.push_back(values[buffer]);
    }
    for (size_t i = 0; i < step.writes.size(); ++i) {
      const int buffer = step.writes[i].buffer;
      if (!in_arena(buffer)) continue;
      const auto same = std::find(made.begin(), made.end(), buffer);
      if (values[buffer] != kNoValue) {
        // A further part of it.
        inputs.push_back(values[buffer]);
      } else if (same == made.end()) {
        write_positions[i] = static_cast<int>(made.size());
        made.push_back(buffer);
        types.push_back({DType::kUInt8, Shape({std::max<int64_t>(1, buffers[buffer].bytes)})});
      }
    }
    std::vector<std::pair<int, int>> in_place;
    for (const auto& [write, read] : step.in_place) {
      if (write_positions[write] >= 0 && read_positions[read] >= 0) {
        in_place.push_back({write_positions[write], read_positions[read]});
      }
    }
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<ValueId> created,
        graph.AddNode(std::make_shared<StepOp>(std::move(types), std::move(in_place)), std::move(inputs)));
    for (size_t i = 0; i < made.size(); ++i) values[made[i]] = created[i];
  }
  for (const Place& output : outputs) {
    if (in_arena(output.region.buffer)) graph.MarkOutput(values[output.region.buffer]);
  }
  const MemoryPlan plan = PlanMemory(graph);
  ArenaPlan arena;
  arena.bytes = plan.arena_bytes;
  for (const ValueId value : values) arena.offsets.push_back(value == kNoValue ? -1 : plan.offsets[value]);
  return arena;
}

template <typename T>
void Fill(std::byte* memory, int64_t elements, double number) {
  std::fill_n(reinterpret_cast<T*>(memory), elements, static_cast<T>(number));
}

absl::Status FillConstant(const Buffer& buffer, std::byte* memory) {
  const int64_t elements = buffer.bytes / SizeOf(buffer.dtype);
  switch (buffer.dtype) {
    case DType::kFloat32:
      Fill<float>(memory, elements, buffer.constant);
      return absl::OkStatus();
    case DType::kFloat64:
      Fill<double>(memory, elements, buffer.constant);
      return absl::OkStatus();
    case DType::kInt32:
      Fill<int32_t>(memory, elements, buffer.constant);
      return absl::OkStatus();
    case DType::kInt64:
      Fill<int64_t>(memory, elements, buffer.constant);
      return absl::OkStatus();
    case DType::kUInt8:
      Fill<uint8_t>(memory, elements, buffer.constant);
      return absl::OkStatus();
    case DType::kBFloat16:
    case DType::kFloat16:
      break;
  }
  return absl::UnimplementedError(absl::StrCat("cpu: a constant of ", ToString(buffer.dtype)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuExecutable>> CpuExecutable::Plan(Lowering& lowering) {
  std::unique_ptr<CpuExecutable> executable(new CpuExecutable(lowering.team()));
  TANDEM_RETURN_IF_ERROR(executable->PlanMemoryOf(lowering));
  return executable;
}

CpuExecutable::~CpuExecutable() {
  if (workspace_bytes_ != nullptr) *workspace_bytes_ -= beyond_plan_;
}

absl::Status CpuExecutable::PlanMemoryOf(Lowering& lowering) {
  for (size_t i = 0; i < lowering.graph().outputs().size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(const cpu::Place output, lowering.Output(static_cast<int>(i)));
    outputs_.push_back(output);
  }
  TANDEM_ASSIGN_OR_RETURN(ArenaPlan plan, PlanArena(lowering, outputs_));
  arena_bytes_ = plan.bytes;
  arena_offsets_ = std::move(plan.offsets);
  planned_buffers_ = lowering.buffers();
  for (const Buffer& buffer : planned_buffers_) {
    if (buffer.source == Buffer::Source::kConstant) constant_bytes_ += Align(buffer.bytes);
  }
  input_buffers_.assign(lowering.graph().inputs().size(), -1);
  steps_ = std::move(lowering.steps());
  return absl::OkStatus();
}

absl::Status CpuExecutable::Allocate(int64_t beyond_plan, std::shared_ptr<int64_t> workspace_bytes) {
  arena_ = Memory::Allocate(arena_bytes_);
  constants_ = Memory::Allocate(constant_bytes_);
  if (arena_.data() == nullptr || constants_.data() == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes(), " bytes of intermediate values"));
  }
  beyond_plan_ = beyond_plan;
  workspace_bytes_ = std::move(workspace_bytes);
  *workspace_bytes_ += beyond_plan_;
  buffers_.assign(planned_buffers_.size(), nullptr);
  int64_t constant_offset = 0;
  for (size_t i = 0; i < planned_buffers_.size(); ++i) {
    const Buffer& buffer = planned_buffers_[i];
    switch (buffer.source) {
      case Buffer::Source::kArena:
        if (arena_offsets_[i] >= 0) buffers_[i] = arena_.data() + arena_offsets_[i];
        break;
      case Buffer::Source::kInput:
        input_buffers_[buffer.input] = static_cast<int>(i);
        break;
      case Buffer::Source::kVariable:
        buffers_[i] = buffer.memory;
        break;
      case Buffer::Source::kConstant:
        buffers_[i] = constants_.data() + constant_offset;
        constant_offset += Align(buffer.bytes);
        TANDEM_RETURN_IF_ERROR(FillConstant(buffer, buffers_[i]));
        break;
    }
  }
  const RunContext context = {.buffers = buffers_.data(), .team = &team_, .kernels = &BestKernels()};
  for (Step& step : steps_) {
    if (step.bind) TANDEM_RETURN_IF_ERROR(step.bind(context));
  }
  return absl::OkStatus();
}

absl::Status CpuExecutable::Run(absl::Span<const void* const> inputs, Communicator* communicator) {
  if (inputs.size() != input_buffers_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph takes ", input_buffers_.size(), " inputs, given were ", inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Steps only read inputs.
    buffers_[input_buffers_[i]] = static_cast<std::byte*>(const_cast<void*>(inputs[i]));
  }
  const RunContext context = {
      .buffers = buffers_.data(), .team = &team_, .kernels = &BestKernels(), .communicator = communicator};
  const ScopedTeam scoped_team(team_);
  if (profiling_) {
    TANDEM_RETURN_IF_ERROR(RunProfiled(context));
  } else {
    for (const Step& step : steps_) TANDEM_RETURN_IF_ERROR(step.run(context));
  }
  has_run_ = true;
  return absl::OkStatus();
}

absl::Status CpuExecutable::RunProfiled(const RunContext& context) {
  auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < steps_.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(steps_[i].run(context));
    const auto end = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(end - start).count();
    StepTime& time = profile_[i];
    time.best_seconds = time.runs == 0 ? seconds : std::min(time.best_seconds, seconds);
    time.total_seconds += seconds;
    ++time.runs;
    start = end;
  }
  return absl::OkStatus();
}

void CpuExecutable::StartProfile() {
  profiling_ = true;
  profile_.clear();
  for (const Step& step : steps_) profile_.push_back({.name = step.name});
}

absl::StatusOr<Tensor> CpuExecutable::Output(int i) const {
  if (!has_run_) return absl::FailedPreconditionError("the executable has not run yet");
  if (i < 0 || i >= static_cast<int>(outputs_.size())) {
    return absl::InvalidArgumentError(absl::StrCat("output ", i, " of ", outputs_.size()));
  }
  const cpu::Place& output = outputs_[i];
  return ToTensor(output.layout, buffers_[output.region.buffer] + output.region.offset);
}

}  // namespace tandem::cpu
