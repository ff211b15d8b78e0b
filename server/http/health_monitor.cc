#include "server/http/health_monitor.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {

HealthMonitor::HealthMonitor(Options options, std::vector<Part> parts)
    : options_(std::move(options)), parts_(std::move(parts)) {
  for (size_t i = 0; i < parts_.size(); ++i) states_.push_back(std::make_shared<State>());
  thread_ = std::thread([this] { Run(); });
}

HealthMonitor::~HealthMonitor() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void HealthMonitor::Run() {
  while (true) {
    Ask();
    if (options_.on_round != nullptr) options_.on_round(Now());
    MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.interval)) return;
  }
}

void HealthMonitor::Ask() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const std::shared_ptr<State> state = states_[i];
    {
      MutexLock lock(&state->mutex);
      if (state->asked != absl::InfiniteDuration()) continue;
      state->asked = options_.clock->Elapsed();
    }
    // Unlocked, because the part may answer at once.
    parts_[i].ask([state](const absl::Status& answer) {
      MutexLock lock(&state->mutex);
      state->asked = absl::InfiniteDuration();
      state->answer = answer;
    });
  }
}

Health HealthMonitor::Now() const {
  Health health;
  const absl::Duration now = options_.clock->Elapsed();
  for (size_t i = 0; i < parts_.size(); ++i) {
    const bool is_busy = parts_[i].is_busy != nullptr && parts_[i].is_busy();
    State& state = *states_[i];
    MutexLock lock(&state.mutex);
    const bool is_late = state.asked != absl::InfiniteDuration() && now - state.asked > options_.patience;
    if (is_late && is_busy) {
      health.ready.Update(absl::UnavailableError(absl::StrCat(
          parts_[i].name, " has been busy for ", absl::ToInt64Seconds(now - state.asked), " seconds")));
    } else if (is_late) {
      health.alive.Update(absl::UnavailableError(
          absl::StrCat(parts_[i].name, " has not answered for ", absl::ToInt64Seconds(now - state.asked),
                       " seconds; restart the daemon, running jobs continue")));
    }
    if (!state.answer.ok()) {
      health.ready.Update(absl::UnavailableError(absl::StrCat(parts_[i].name, ": ", state.answer.message())));
    }
  }
  if (options_.serving != nullptr) {
    // The reason of the stop is more useful than the errors of stopping parts.
    if (absl::Status serving = options_.serving(); !serving.ok()) health.ready = std::move(serving);
  }
  if (!health.alive.ok()) health.ready = health.alive;
  return health;
}

}  // namespace tandem
