#ifndef TANDEM_ENGINE_SCHEDULES_SCHEDULE_H_
#define TANDEM_ENGINE_SCHEDULES_SCHEDULE_H_

#include "absl/status/status.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Sets missing fields to their defaults. Three kinds of fields stay missing: lengths that follow the
// training's length, units that follow the schedule's kind, and a plateau's mode, which follows its metric.
void FillScheduleDefaults(v1::Schedule* schedule);

// INVALID_ARGUMENT with the wrong fields, relative to the Schedule ("cosine.t_max"). `schedule` has its
// defaults.
absl::Status CheckSchedule(const v1::Schedule& schedule);

}  // namespace tandem

#endif  // TANDEM_ENGINE_SCHEDULES_SCHEDULE_H_
