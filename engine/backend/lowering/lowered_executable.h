#ifndef TANDEM_ENGINE_BACKEND_LOWERING_LOWERED_EXECUTABLE_H_
#define TANDEM_ENGINE_BACKEND_LOWERING_LOWERED_EXECUTABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/backend/executable.h"
#include "engine/backend/lowering/arena_plan.h"
#include "engine/backend/lowering/lowering_core.h"
#include "engine/backend/lowering/reductions.h"
#include "engine/base/status_macros.h"

namespace tandem {

// The time of a step over all profiled runs, and its work in a run.
struct StepTime {
  std::string name;
  double flops = 0;   // StepOf::flops.
  int64_t bytes = 0;  // Of the buffers that the step reads and writes, without its scratch memory.
  int64_t runs = 0;
  double total_seconds = 0;
  double best_seconds = 0;
};

// An executable of the steps and buffers of a lowering. A backend derives its executable, which allocates
// memory and runs the steps. `Backend` as in LoweringCore.
template <typename Backend>
class LoweredExecutable : public Executable {
 public:
  using Layout = typename Backend::Layout;
  using RunContext = typename Backend::RunContext;

  absl::StatusOr<Tensor> Output(int i) const final {
    if (newest_ == nullptr) return absl::FailedPreconditionError("the executable has not run yet");
    if (i < 0 || i >= static_cast<int>(outputs_.size())) {
      return absl::InvalidArgumentError(absl::StrCat("output ", i, " of ", outputs_.size()));
    }
    const PlaceOf<Layout>& output = outputs_[i];
    return ReadMemory(output.layout, (*newest_)[output.region.buffer] + output.region.offset);
  }

  // Returns the times by step. Empty without profiling.
  const std::vector<StepTime>& profile() const { return profile_; }

 protected:
  // `context` lives at least as long as the steps. May be null.
  explicit LoweredExecutable(std::shared_ptr<const void> context) : context_(std::move(context)) {}

  // Takes the steps, buffers and outputs of `lowering`, which has lowered its graph. `at_once` as in
  // SettleReductions.
  absl::Status Take(LoweringCore<Backend>& lowering, bool at_once) {
    for (size_t i = 0; i < lowering.graph().outputs().size(); ++i) {
      TANDEM_ASSIGN_OR_RETURN(const PlaceOf<Layout> output, lowering.Output(static_cast<int>(i)));
      outputs_.push_back(output);
    }
    reductions_.Resize(SettleReductions(lowering.steps(), at_once));
    steps_ = std::move(lowering.steps());
    buffers_ = lowering.buffers();
    return absl::OkStatus();
  }

  // Plans the arena. If not `shared`, each buffer has its own memory. Otherwise buffers share memory if they
  // are not in use at the same time.
  absl::StatusOr<ArenaPlan> PlanArenaOfSteps(bool shared) const {
    std::vector<int64_t> bytes;
    std::vector<int> kept;  // To the end.
    for (const Buffer& buffer : buffers_) {
      const bool is_in_arena = buffer.source == Buffer::Source::kArena;
      if (is_in_arena && !shared) kept.push_back(static_cast<int>(bytes.size()));
      bytes.push_back(is_in_arena ? AlignTo(Backend::kAlignment, buffer.bytes) : -1);
    }
    const auto buffers_of = [](const std::vector<Region>& regions) {
      std::vector<int> buffers;
      for (const Region& region : regions) buffers.push_back(region.buffer);
      return buffers;
    };
    std::vector<StepUse> uses;
    for (const auto& step : steps_) {
      uses.push_back({step.name, buffers_of(step.reads), buffers_of(step.writes), step.in_place});
    }
    for (const auto& output : outputs_) kept.push_back(output.region.buffer);
    return PlanArena(bytes, uses, kept);
  }

  // Calls the `bind` of all steps.
  absl::Status BindSteps(const RunContext& context) {
    for (const auto& step : steps_) {
      if (step.bind) TANDEM_RETURN_IF_ERROR(step.bind(context));
    }
    return absl::OkStatus();
  }

  // Begins a new profile.
  void ResetProfile() {
    profile_.clear();
    std::vector<std::set<int>> users(buffers_.size());  // The steps of each buffer.
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (const Region& region : steps_[i].reads) users[region.buffer].insert(static_cast<int>(i));
      for (const Region& region : steps_[i].writes) users[region.buffer].insert(static_cast<int>(i));
    }
    for (const auto& output : outputs_) users[output.region.buffer].insert(-1);
    for (const auto& step : steps_) {
      StepTime time = {.name = step.name, .flops = step.flops};
      std::set<int> read, written;
      for (const Region& region : step.reads) read.insert(region.buffer);
      for (const Region& region : step.writes) written.insert(region.buffer);
      for (const int buffer : read) time.bytes += buffers_[buffer].bytes;
      for (const int buffer : written) {
        const bool is_scratch =
            buffers_[buffer].source == Buffer::Source::kArena && users[buffer].size() == 1;
        if (!is_scratch) time.bytes += buffers_[buffer].bytes;
      }
      profile_.push_back(std::move(time));
    }
  }
  void AddTime(size_t step, double seconds) {
    StepTime& time = profile_[step];
    time.best_seconds = time.runs == 0 ? seconds : std::min(time.best_seconds, seconds);
    time.total_seconds += seconds;
    ++time.runs;
  }

  const std::vector<StepOf<RunContext>>& steps() const { return steps_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  BegunReductions& reductions() { return reductions_; }
  // Sets the addresses of the newest run, by buffer. They must live until the next call.
  void SetNewest(const std::vector<std::byte*>* addresses) { newest_ = addresses; }

 private:
  // Returns the tensor at `data`, after all work of the newest run.
  virtual absl::StatusOr<Tensor> ReadMemory(const Layout& layout, const std::byte* data) const = 0;

  const std::shared_ptr<const void> context_;
  std::vector<StepOf<RunContext>> steps_;
  std::vector<Buffer> buffers_;
  std::vector<PlaceOf<Layout>> outputs_;
  BegunReductions reductions_;
  const std::vector<std::byte*>* newest_ = nullptr;  // Null before the first run.
  std::vector<StepTime> profile_;                    // By step.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LOWERING_LOWERED_EXECUTABLE_H_
