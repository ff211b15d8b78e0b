#ifndef TANDEM_ENGINE_TRAINING_JOB_CHECKS_H_
#define TANDEM_ENGINE_TRAINING_JOB_CHECKS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "engine/base/field_violations.h"
#include "engine/data/dataset.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The most that a count in a job may be: steps, epochs, samples of a batch.
inline constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

// Adds all that is wrong with a job by itself, without its data. `spec` has its defaults filled in. Returns
// the shapes of the layers' outputs, empty where the model is wrong.
std::vector<Shape> CheckFilledJob(const v1::JobSpec& spec, FieldViolations& violations);

// Adds what does not go with the data. `outputs` are CheckFilledJob's.
void CheckJobAgainstData(const v1::JobSpec& spec, const std::vector<Shape>& outputs,
                         const DatasetInfo& dataset, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_JOB_CHECKS_H_
