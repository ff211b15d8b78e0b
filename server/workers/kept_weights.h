#ifndef TANDEM_SERVER_WORKERS_KEPT_WEIGHTS_H_
#define TANDEM_SERVER_WORKERS_KEPT_WEIGHTS_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "tandem/v1/job.pb.h"

// The models of other jobs that jobs begin with. A job keeps its own by a second name (a hard link) from its
// first run on, so that it begins anew with the same when the other job is deleted. It lies in the state
// folder, beside the jobs' folders, which their workers may write: "kept-weights/<id>.safetensors" for the
// job with the folder "jobs/<id>".

namespace tandem {

// Where the kept weights of all jobs are whose folders are in `jobs_folder`.
std::string KeptWeightsFolder(const std::string& jobs_folder);

// Where the job with this folder keeps its own.
std::string KeptWeightsPath(const std::string& job_folder);

// The id of the job whose weights have this path; empty where it is none of KeptWeightsPath.
std::string JobOfKeptWeights(const std::string& path);

// The file that the job with this folder keeps; nothing where it keeps none.
std::optional<std::string> FindKeptWeights(const std::string& job_folder);

// link(2), or a test's.
using LinkFunction = std::function<int(const char* from, const char* to)>;

// Has the job with this folder keep the file `model`, which is never changed in place; durable on OK.
// UNIMPLEMENTED: the file systems have no second name for it. FAILED_PRECONDITION: it is no regular file.
// Other errors name both paths.
absl::Status KeepWeights(const std::string& model, const std::string& job_folder, const LinkFunction& link);

// Whether the job may still begin anew: it has not ended, or can be resumed. Forks begin with a checkpoint,
// and read no kept weights.
bool MayNeedKeptWeights(const v1::Job& job);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_KEPT_WEIGHTS_H_
