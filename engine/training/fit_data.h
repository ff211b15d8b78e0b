#ifndef TANDEM_ENGINE_TRAINING_FIT_DATA_H_
#define TANDEM_ENGINE_TRAINING_FIT_DATA_H_

#include "absl/status/status.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Returns `dataset` with the choices that an NpySource or a CsvSource leaves open. The network decides about
// the inputs: if it has an embedding, integers are tokens. If it reads images, arrays [samples, height,
// width] are images. The loss decides about the kind of targets, about ignored targets, and whether a table's
// targets may be scaled. Other sources do not change. `dataset` has its source. The model of `spec` may be a
// template.
v1::DatasetSpec FitData(const v1::JobSpec& spec, v1::DatasetSpec dataset);

// Checks the choices of `dataset` that the loss of `spec` must accept: a table's target_scaling.
// INVALID_ARGUMENT with the wrong field, relative to the DatasetSpec. `dataset` has its source.
absl::Status CheckDataChoices(const v1::JobSpec& spec, const v1::DatasetSpec& dataset);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_FIT_DATA_H_
