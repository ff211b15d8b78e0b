#ifndef TANDEM_CLIENT_CLI_JOB_SOURCE_H_
#define TANDEM_CLIENT_CLI_JOB_SOURCE_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "client/cli/command.h"
#include "client/cli/session.h"
#include "client/lib/client.h"
#include "client/lib/job_file.h"

namespace tandem::cli {

// A job with its changes, for `submit`, `validate` and `fork`.
struct JobSource {
  std::string file = {};
  std::vector<std::string> overrides = {};  // Of --set.
  std::string on = {};                      // The kind of cluster. Empty for the daemon's machine.
  std::string weights = {};                 // The file or URL of --weights. Empty: none.
};

// Adds the options of the changes to `command`, which uses `source` later.
void AddChanges(Command command, JobSource& source);

// Adds the option --on to `command`, which uses `on` later.
void AddOn(Command command, std::string& on);

// Returns whether `on` is a kind of cluster, or empty. Otherwise prints the problem.
bool CheckOn(Session& session, const std::string& on);

// Moves the job to this kind of cluster, unless `on` is empty. Keeps the fields of this kind in the job.
void ApplyOn(const std::string& on, v1::JobSpec* spec);

// Reads the job and changes it, except for its weights. On failure, prints a line for each problem and
// returns nothing.
absl::optional<client::JobFile> ReadJob(Session& session, const JobSource& source);

// Returns whether the job may start from the file or URL `weights` of --weights, which may be empty. Prints
// the problem if the job, which was read from the file `name`, has other initial weights.
bool MayTakeWeights(Session& session, const std::string& weights, const std::string& name,
                    const v1::JobSpec& spec);

// Uploads the file `weights` of --weights, if given, and names it in the job. A URL is only named, because
// the daemon fetches it. The daemon keeps the upload for
// a week after its last use, so that a repeated command sends nothing. Returns kSucceeded, or prints the
// problem and returns its exit code.
int UploadWeights(Session& session, client::Client& client, const std::string& weights, v1::JobSpec* spec);

// Applies the overrides to a job. On failure, prints the problem and returns false.
bool ApplyOverrides(Session& session, const JobSource& source, v1::JobSpec* spec);

// Prints why the daemon refused a job, with a line for each field. The line has the field's place in the file
// or its override. Returns the exit code.
int FailJob(Session& session, const JobSource& source, const client::JobFile& file,
            const absl::Status& status);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_JOB_SOURCE_H_
