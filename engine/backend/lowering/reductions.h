#ifndef TANDEM_ENGINE_BACKEND_LOWERING_REDUCTIONS_H_
#define TANDEM_ENGINE_BACKEND_LOWERING_REDUCTIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "engine/backend/communicator.h"
#include "engine/backend/lowering/step.h"

namespace tandem {

// Sets `run` of the steps that reduce, and adds the steps that await them. `steps` are in running order. A
// reduction begins at its own step and overlaps the next steps. It is awaited before the first step that
// reads or writes its buffer, or at the end. The awaiting step lists the buffer as a use, so that a memory
// plan keeps the buffer until then. If `at_once`, a reduction whose result the next step uses runs as a whole
// in its own step. Returns the number of awaited reductions, for BegunReductions.
template <typename RunContext>
size_t SettleReductions(std::vector<StepOf<RunContext>>& steps, bool at_once) {
  using Step = StepOf<RunContext>;
  const auto uses = [](const Step& step, int buffer) {
    const auto is_it = [buffer](const Region& region) { return region.buffer == buffer; };
    return std::any_of(step.reads.begin(), step.reads.end(), is_it) ||
           std::any_of(step.writes.begin(), step.writes.end(), is_it);
  };
  size_t awaited = 0;
  std::map<size_t, std::vector<Step>> awaits;  // By the position of the following step.
  for (size_t i = 0; i < steps.size(); ++i) {
    const Region bucket = steps[i].reduced;
    if (bucket.buffer < 0) continue;
    const auto view = [bucket, elements = steps[i].reduced_elements](const RunContext& run) {
      return BufferView{run.At(bucket), elements, DType::kFloat32};
    };
    size_t user = i + 1;
    while (user < steps.size() && !uses(steps[user], bucket.buffer)) ++user;
    if (at_once && user == i + 1) {
      steps[i].run = [view](const RunContext& run) {
        if (run.communicator == nullptr || run.communicator->world_size() == 1) return absl::OkStatus();
        return run.communicator->AllReduce(view(run), ReduceOp::kSum);
      };
      continue;
    }
    const size_t which = awaited++;
    steps[i].run = [view, which](const RunContext& run) {
      return run.reductions->Begin(which, view(run), run.communicator);
    };
    awaits[user].push_back(
        {.name = "all_reduce: await",
         .reads = {bucket},
         .writes = {bucket},
         .run = [which](const RunContext& run) { return run.reductions->Await(which, run.communicator); },
         .on_host = true});
  }
  std::vector<Step> placed;
  for (size_t i = 0; i <= steps.size(); ++i) {
    if (const auto found = awaits.find(i); found != awaits.end()) {
      std::move(found->second.begin(), found->second.end(), std::back_inserter(placed));
    }
    if (i < steps.size()) placed.push_back(std::move(steps[i]));
  }
  steps = std::move(placed);
  return awaited;
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LOWERING_REDUCTIONS_H_
