#ifndef TANDEM_PROTO_JOB_FILE_SWEEP_VALUES_H_
#define TANDEM_PROTO_JOB_FILE_SWEEP_VALUES_H_

#include <cstddef>
#include <optional>
#include <string>

#include "tandem/v1/sweep.pb.h"

namespace tandem {

// A value of a sweep's field that the field does not take.
struct SweepValueProblem {
  std::string path;  // Such as "grid[0].values[1]".
  std::string text;
};

// Returns the number of listed values of a sweep's fields.
size_t CountSweepValues(const v1::Sweep& sweep);

// Converts the values of a sweep's fields from their forms in a job file to the forms of a request, such as
// "relu" to "ACTIVATION_RELU". Returns the first problem; the sweep is then partly converted. Copies the base
// for each value.
std::optional<SweepValueProblem> ConvertSweepValues(v1::Sweep* sweep);

}  // namespace tandem

#endif  // TANDEM_PROTO_JOB_FILE_SWEEP_VALUES_H_
