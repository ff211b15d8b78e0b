#ifndef TANDEM_ENGINE_TRAINING_JOB_NAME_H_
#define TANDEM_ENGINE_TRAINING_JOB_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// Why this may not be the name of a job, or of what else has an id that begins with it; empty where it may.
// An empty name is one that was left out.
std::string WhyNoJobName(absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_JOB_NAME_H_
