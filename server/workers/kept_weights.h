#ifndef TANDEM_SERVER_WORKERS_KEPT_WEIGHTS_H_
#define TANDEM_SERVER_WORKERS_KEPT_WEIGHTS_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "tandem/v1/job.pb.h"

// Other jobs' models and uploaded files from which jobs start. A job keeps such a file by a second name (a
// hard link), so that it can start again if the other job or the upload is deleted. A job keeps another job's
// model from its first run on, and an uploaded file from before its creation. The name is in the state folder
// beside the jobs' folders, because workers may write in those: "kept-weights/<id>.safetensors" for the job
// with the folder "jobs/<id>".

namespace tandem {

// Returns true if `error` of link(2) says that the file can have no second name in that place.
bool HasNoSecondNames(int error);

// Returns the folder of the kept weights of all jobs in `jobs_folder`.
std::string KeptWeightsFolder(const std::string& jobs_folder);

// Returns the path of the kept weights of the job with this folder.
std::string KeptWeightsPath(const std::string& job_folder);

// Returns the id of the job whose kept weights have this path; empty if the path has another form.
std::string JobOfKeptWeights(const std::string& path);

// Returns the kept file of the job with this folder; nullopt if none.
std::optional<std::string> FindKeptWeights(const std::string& job_folder);

// link(2), or a test's function.
using LinkFunction = std::function<int(const char* from, const char* to)>;

// Makes the job with this folder keep the file `model`, which must never change in place. On OK the name is
// durable. UNIMPLEMENTED: the file systems allow no second name. FAILED_PRECONDITION: it is no regular file.
// Other errors name both paths.
absl::Status KeepWeights(const std::string& model, const std::string& job_folder, const LinkFunction& link);

// Makes the job with this folder keep a file of an upload, which never changes in place. Copies the file if
// the file systems allow no second name. On OK the file is durable. Other errors are those of KeepWeights.
absl::Status KeepUploadedWeights(const std::string& file, const std::string& job_folder,
                                 const LinkFunction& link);

// Links a file, which never changes in place. Copies the file if it can have no second name.
absl::Status LinkOrCopyFile(const std::string& from, const std::string& to, const LinkFunction& link);

// Returns true if the job may still start from the beginning: it has not ended, or can be resumed. Forks
// start from a checkpoint and read no kept weights.
bool MayNeedKeptWeights(const v1::Job& job);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_KEPT_WEIGHTS_H_
