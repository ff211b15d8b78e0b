#ifndef TANDEM_ENGINE_TRAINING_JOB_NAME_H_
#define TANDEM_ENGINE_TRAINING_JOB_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// Returns why `name` may not be a job's name, or "". Other objects whose ids begin with a name follow the
// same rule. An empty name means a missing name and is right.
std::string WhyNoJobName(absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_JOB_NAME_H_
