#ifndef TANDEM_ENGINE_TRAINING_FIT_DATA_H_
#define TANDEM_ENGINE_TRAINING_FIT_DATA_H_

#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Returns `dataset` with the choices that an NpySource or a CsvSource leaves to the job. The network chooses:
// its embedding makes integers tokens, and a network of images makes arrays [samples, height, width] images.
// The loss chooses the kind of targets and the ignored targets, and whether a table's targets may be scaled.
// Other sources stay. `dataset` has its source. The model of `spec` may be a template.
v1::DatasetSpec FitData(const v1::JobSpec& spec, v1::DatasetSpec dataset);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_FIT_DATA_H_
