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
  // The file's name, and where fields stand in it; its spec is unset.
  JobFile file;
  // Whether the file is a job alone, which is the sweep's base: then positions are those of the job.
  bool is_job = false;
};

// Reads a sweep file ("-": standard input), a mapping with the fields of v1.Sweep in YAML or JSON, `base`
// among them; or a job file of any format, as the base of a sweep that varies nothing yet. Values are as
// AddGrid has them. Errors are those of ReadJobFile.
absl::StatusOr<SweepFile> ReadSweepFile(const std::string& path);
absl::StatusOr<SweepFile> ParseSweepFile(const std::string& content, const std::string& name);

// Adds a field of a grid to a sweep with a base: "training.optimizer.adam.learning_rate=0.1,0.01". Values are
// written as in a job file; a list as a value has brackets: "model.layers[0].conv2d.kernel=[3,3],[5,5]".
// INVALID_ARGUMENT: the field or a value is wrong; then the sweep is as before.
absl::Status AddGrid(absl::string_view assignment, v1::Sweep* sweep);

// Adds a field of a random search: "training.optimizer.sgd.learning_rate=log_uniform(1e-4,0.1)",
// uniform(MIN,MAX), integer(MIN,MAX), or choice(...) with values as AddGrid has them. INVALID_ARGUMENT, as
// AddGrid.
absl::Status AddRandom(absl::string_view assignment, v1::Sweep* sweep);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_SWEEP_FILE_H_
