#include "engine/backend/lowering/arena_plan.h"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/memory_plan.h"

namespace tandem {
namespace {

// A step in the graph of buffers that PlanMemory plans.
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

}  // namespace

absl::StatusOr<ArenaPlan> PlanArena(absl::Span<const int64_t> buffer_bytes, absl::Span<const StepUse> steps,
                                    absl::Span<const int> outputs) {
  const auto in_arena = [&](int buffer) { return buffer_bytes[buffer] >= 0; };
  Graph graph;
  std::vector<ValueId> values(buffer_bytes.size(), kNoValue);
  for (const StepUse& step : steps) {
    std::vector<ValueId> inputs;
    std::vector<TensorType> types;
    std::vector<int> made;
    std::vector<int> read_positions(step.reads.size(), -1);
    std::vector<int> write_positions(step.writes.size(), -1);
    for (size_t i = 0; i < step.reads.size(); ++i) {
      const int buffer = step.reads[i];
      if (!in_arena(buffer)) continue;
      if (values[buffer] == kNoValue) {
        return absl::InternalError(absl::StrCat("step \"", step.name, "\" reads what no step has written"));
      }
      read_positions[i] = static_cast<int>(inputs.size());
      inputs.push_back(values[buffer]);
    }
    for (size_t i = 0; i < step.writes.size(); ++i) {
      const int buffer = step.writes[i];
      if (!in_arena(buffer)) continue;
      const auto same = std::find(made.begin(), made.end(), buffer);
      if (values[buffer] != kNoValue) {
        // The step writes another part of the buffer.
        inputs.push_back(values[buffer]);
      } else if (same == made.end()) {
        write_positions[i] = static_cast<int>(made.size());
        made.push_back(buffer);
        types.push_back({DType::kUInt8, Shape({std::max<int64_t>(1, buffer_bytes[buffer])})});
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
  for (const int output : outputs) {
    if (in_arena(output) && values[output] != kNoValue) graph.MarkOutput(values[output]);
  }
  const MemoryPlan plan = PlanMemory(graph);
  ArenaPlan arena;
  arena.bytes = plan.arena_bytes;
  for (const ValueId value : values) arena.offsets.push_back(value == kNoValue ? -1 : plan.offsets[value]);
  return arena;
}

}  // namespace tandem
