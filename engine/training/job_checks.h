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

// The largest count in a job: steps, epochs, or samples of a batch.
inline constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

// Adds all mistakes of a job that show without its data. `spec` has its defaults. Returns the shapes of the
// layers' outputs, or an empty vector if the model is wrong.
std::vector<Shape> CheckFilledJob(const v1::JobSpec& spec, FieldViolations& violations);

// Adds all mistakes that depend on the data. `outputs` is the result of CheckFilledJob.
void CheckJobAgainstData(const v1::JobSpec& spec, const std::vector<Shape>& outputs,
                         const DatasetInfo& dataset, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_JOB_CHECKS_H_
