#include "engine/backends/cpu/reductions.h"

#include <cstdint>
#include <optional>

#include "engine/backend/place_reductions.h"

namespace tandem::cpu {
namespace {

// Returns float32 elements from the beginning of `region` on.
BufferView ViewOf(const RunContext& run, Region region, int64_t elements) {
  return {run.At<float>(region), elements, DType::kFloat32};
}

}  // namespace

size_t SettleReductions(std::vector<Step>& steps) {
  return PlaceReductions(steps, [](Step& step, size_t which, bool is_used_next) -> std::optional<Step> {
    const Region bucket = step.reduced;
    const int64_t elements = step.reduced_elements;
    if (is_used_next) {
      step.run = [=](const RunContext& run) {
        if (run.communicator == nullptr || run.communicator->world_size() == 1) return absl::OkStatus();
        return run.communicator->AllReduce(ViewOf(run, bucket, elements), ReduceOp::kSum);
      };
      return std::nullopt;
    }
    step.run = [=](const RunContext& run) {
      return run.reductions->Begin(which, ViewOf(run, bucket, elements), run.communicator);
    };
    return Step{.name = "all_reduce: await",
                .reads = {bucket},
                .writes = {bucket},
                .run = [=](const RunContext& run) { return run.reductions->Await(which, run.communicator); }};
  });
}

}  // namespace tandem::cpu
