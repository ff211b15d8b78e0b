#include "engine/base/mutex.h"

#include "engine/base/alarm_clock.h"

namespace tandem {

bool Mutex::AwaitWithTimeout(const absl::Condition& condition, absl::Duration timeout) {
  if (timeout >= absl::InfiniteDuration()) {
    Await(condition);
    return true;
  }
  if (condition.Eval()) return true;
  if (timeout <= absl::ZeroDuration()) {
    // Gives other threads a turn, as a wait would do.
    Unlock();
    Lock();
    return condition.Eval();
  }
  AlarmClock::Alarm alarm = {.mutex = this};
  const auto is_over = [&] { return alarm.has_rung.load() || condition.Eval(); };
  const AlarmClock::Place place = AlarmClock::Get()->Add(timeout, &alarm);
  Await(absl::Condition(&is_over));
  AlarmClock::Get()->Remove(place);
  return condition.Eval();
}

}  // namespace tandem
