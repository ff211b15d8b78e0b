#ifndef TANDEM_ENGINE_SCHEDULES_SCHEDULE_H_
#define TANDEM_ENGINE_SCHEDULES_SCHEDULE_H_

#include "absl/status/status.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Sets the fields that have a default and are left out. Lengths that follow from the training's stay out, and
// so do units that follow from the schedule's kind and a plateau's mode, which follows from its metric.
void FillScheduleDefaults(v1::Schedule* schedule);

// INVALID_ARGUMENT with the fields at fault, relative to the Schedule ("cosine.t_max"). `schedule` has its
// defaults filled in.
absl::Status CheckSchedule(const v1::Schedule& schedule);

}  // namespace tandem

#endif  // TANDEM_ENGINE_SCHEDULES_SCHEDULE_H_
