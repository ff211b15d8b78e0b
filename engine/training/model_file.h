#ifndef TANDEM_ENGINE_TRAINING_MODEL_FILE_H_
#define TANDEM_ENGINE_TRAINING_MODEL_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/env.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Writes a model as safetensors (temporary file, fsync, rename): `tensors`, and as metadata the job that
// trained it. `spec` has its defaults, and its data set as it was submitted: a model travels, and does not
// say where the data lay on this machine.
absl::Status WriteModel(Env* env, const std::string& path, const v1::JobSpec& spec,
                        absl::Span<const NamedTensor> tensors);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_MODEL_FILE_H_
