#ifndef TANDEM_SERVER_ADMISSION_PLAN_KEY_H_
#define TANDEM_SERVER_ADMISSION_PLAN_KEY_H_

#include <string>

#include "engine/data/dataset.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Returns a key with this property: two jobs with the same key have the same plan (PlanJob) if CheckJob
// accepts both. Jobs with the same key may differ in names, seeds and learning rates. `spec` must have its
// defaults.
std::string PlanKey(const v1::JobSpec& spec, const DatasetInfo& data);

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_PLAN_KEY_H_
