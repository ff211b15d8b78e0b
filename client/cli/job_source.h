#ifndef TANDEM_CLIENT_CLI_JOB_SOURCE_H_
#define TANDEM_CLIENT_CLI_JOB_SOURCE_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "client/cli/session.h"
#include "client/lib/job_file.h"

namespace tandem::cli {

// A job file and what is changed in it, as `submit` and `validate` take them.
struct JobSource {
  std::string file;
  std::vector<std::string> overrides;
};

// Reads the job. Where that fails, says every problem on a line of its own and gives nothing.
absl::optional<client::JobFile> ReadJob(Session& session, const JobSource& source);

// Applies the overrides to a job; where that fails, says why and gives false.
bool ApplyOverrides(Session& session, const JobSource& source, v1::JobSpec* spec);

// Says why the daemon refused a job, each field on a line of its own with its place in the file or the
// override that it comes from, and gives the exit code.
int FailJob(Session& session, const JobSource& source, const client::JobFile& file,
            const absl::Status& status);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_JOB_SOURCE_H_
