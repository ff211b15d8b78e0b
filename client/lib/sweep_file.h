#ifndef TANDEM_CLIENT_LIB_SWEEP_FILE_H_
#define TANDEM_CLIENT_LIB_SWEEP_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/lib/job_file.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem::client {

// A sweep as its user wrote it.
struct SweepFile {
  v1::Sweep sweep;
  // The file's name and the places of its fields. Its spec is unset.
  JobFile file;
  // Whether the file is a job file, which is then the sweep's base. Positions are then those of the job.
  bool is_job = false;
};

// Reads a sweep file ("-": standard input): a mapping with the fields of v1.Sweep, including `base`, in YAML
// or JSON. Also reads a job file of any format, as the base of a sweep without fields. Values have the form
// of AddGrid. Errors are those of ReadJobFile.
absl::StatusOr<SweepFile> ReadSweepFile(const std::string& path);
absl::StatusOr<SweepFile> ParseSweepFile(const std::string& content, const std::string& name);

// Adds a grid field to a sweep that has a base: "training.optimizer.adam.learning_rate=0.1,0.01". Values have
// the form of a job file. A value that is a list has brackets: "model.layers[0].conv2d.kernel=[3,3],[5,5]".
// INVALID_ARGUMENT if the field or a value is wrong; the sweep then does not change.
absl::Status AddGrid(absl::string_view assignment, v1::Sweep* sweep);

// Adds a field of a random search: "training.optimizer.sgd.learning_rate=log_uniform(1e-4,0.1)",
// uniform(MIN,MAX), integer(MIN,MAX), or choice(...) with values in the form of AddGrid. INVALID_ARGUMENT as
// for AddGrid.
absl::Status AddRandom(absl::string_view assignment, v1::Sweep* sweep);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_SWEEP_FILE_H_
