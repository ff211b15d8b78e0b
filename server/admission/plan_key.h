#ifndef TANDEM_SERVER_ADMISSION_PLAN_KEY_H_
#define TANDEM_SERVER_ADMISSION_PLAN_KEY_H_

#include <string>

#include "engine/data/dataset.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Two jobs with the same key have the same plan (PlanJob), if CheckJob finds nothing wrong with either. They
// may differ in their names, seeds and learning rates. `spec` has its defaults filled in.
std::string PlanKey(const v1::JobSpec& spec, const DatasetInfo& data);

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_PLAN_KEY_H_
