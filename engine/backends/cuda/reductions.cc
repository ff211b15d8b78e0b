#include "engine/backends/cuda/reductions.h"

#include <cstdint>
#include <optional>

#include "engine/backend/place_reductions.h"

namespace tandem::cuda {

size_t SettleReductions(std::vector<Step>& steps) {
  return PlaceReductions(steps, [](Step& step, size_t which, bool) -> std::optional<Step> {
    const Region bucket = step.reduced;
    const int64_t elements = step.reduced_elements;
    step.run = [=](const RunContext& run) {
      return run.reductions->Begin(which, {run.At(bucket), elements, DType::kFloat32}, run.communicator);
    };
    return Step{.name = "all_reduce: await",
                .reads = {bucket},
                .writes = {bucket},
                .run = [=](const RunContext& run) { return run.reductions->Await(which, run.communicator); },
                .on_host = true};
  });
}

}  // namespace tandem::cuda
