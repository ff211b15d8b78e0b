#include "engine/training/signal_line.h"

#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/collectives/local/local_group.h"

namespace tandem {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(100);
constexpr int64_t kMaxSteps = 64;

// The shared word: a step, and whether the ranks meet after it.
constexpr int64_t WordOf(int64_t step, bool rings) { return step * 2 + (rings ? 1 : 0); }
constexpr int64_t StepOf(int64_t word) { return word / 2; }
constexpr bool IsMarked(int64_t word) { return word % 2 == 1; }

}  // namespace

SignalLine::SignalLine(Options options)
    : options_(std::move(options)),
      word_(SharedWordOf(options_.communicator)),
      launch_steps_(options_.launch_steps),
      met_(options_.first_step - 1) {}

// A mark stays in the word after its meeting, until a rank claims further steps.
bool SignalLine::Rings(int64_t word) const { return IsMarked(word) && StepOf(word) > met_; }

void SignalLine::Claim(int64_t last) {
  if (word_ == nullptr) return;
  int64_t word = word_->load();
  // If the word rings, the ranks meet after `last` or later, because all ranks claim the same steps at a
  // time.
  while (!Rings(word) && StepOf(word) < last && !word_->compare_exchange_weak(word, WordOf(last, false))) {
  }
}

bool SignalLine::MeetsByWord(int64_t last, int64_t next_last) {
  bool rings = false;
  if (options_.look != nullptr) {
    const StepSignals signals = options_.look();
    rings = signals.any() || signals.launch_steps != launch_steps_;
  }
  int64_t word = word_->load();
  while (true) {
    if (Rings(word)) return StepOf(word) == last;
    const int64_t claimed = StepOf(word);
    const int64_t wanted = WordOf(rings ? claimed : std::max(claimed, next_last), rings);
    if (wanted == word || word_->compare_exchange_weak(word, wanted)) return rings && claimed == last;
  }
}

absl::StatusOr<std::optional<StepSignals>> SignalLine::After(int64_t last, bool acts, int64_t next_last) {
  bool meets = acts;
  if (!meets && word_ != nullptr) {
    meets = MeetsByWord(last, next_last);
  } else if (!meets) {
    const AveragingPolicy& averaging = *options_.averaging;
    meets = last >= next_look_ && (!averaging.steps_alone() || averaging.AveragesAfter(last));
  }
  if (!meets) return std::optional<StepSignals>();
  return Meet(last);
}

absl::StatusOr<StepSignals> SignalLine::Meet(int64_t last) {
  // The signals, then the number of steps until the next look.
  double told[6] = {};
  if (options_.look != nullptr) {
    const StepSignals signals = options_.look();
    told[0] = signals.report_is_due ? 1 : 0;
    told[1] = signals.checkpoint_is_due ? 1 : 0;
    told[2] = signals.time_is_up ? 1 : 0;
    told[3] = signals.pause ? 1 : 0;
    told[4] = static_cast<double>(signals.launch_steps);
    told[5] = static_cast<double>(Pace());
  }
  TANDEM_RETURN_IF_ERROR(options_.communicator->Broadcast({told, 6, DType::kFloat64}, 0));
  met_ = last;
  launch_steps_ = static_cast<int64_t>(told[4]);
  next_look_ = last + static_cast<int64_t>(told[5]);
  return StepSignals{.report_is_due = told[0] != 0,
                     .checkpoint_is_due = told[1] != 0,
                     .time_is_up = told[2] != 0,
                     .pause = told[3] != 0,
                     .launch_steps = launch_steps_};
}

int64_t SignalLine::Pace() {
  const absl::Duration now = options_.clock->Elapsed();
  const bool soon = now - std::exchange(look_time_, now) < kLookEvery;
  look_steps_ = std::clamp<int64_t>(soon ? look_steps_ * 2 : look_steps_ / 2, 1, kMaxSteps);
  return look_steps_;
}

}  // namespace tandem
