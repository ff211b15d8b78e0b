#ifndef TANDEM_SERVER_RPC_FORKED_FOLDER_H_
#define TANDEM_SERVER_RPC_FORKED_FOLDER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/data/data_names.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

// The files of jobs that continue other jobs' checkpoints.

namespace tandem::rpc {

// A checkpoint of another job.
struct ForkSource {
  std::string path;
  // As described in the checkpoint's file, with the file's name in a fork's folder.
  v1::Checkpoint checkpoint;
  // The best result so far; empty if none.
  v1::BestResult best;
  // The model's names of its data.
  DataNames names;
  SafetensorsHeader header;
};

// Returns its memory in bytes.
int64_t BytesOf(const ForkSource& source);

// Returns the newest checkpoint in the job's folder, or the checkpoint of `step`. Reads only headers, because
// a hijacked worker may have written files of any size. NOT_FOUND names the steps of existing checkpoints.
// DATA_LOSS: the checkpoint cannot be used; names the steps of the others.
absl::StatusOr<ForkSource> FindForkSource(const v1::Job& job, std::optional<int64_t> step);

// Creates the folder of a fork of `job`, with the checkpoint. Also links the best model if its file says that
// it belongs to the checkpoint's best result. The files survive the other job's removal. On OK the folder is
// durable. Reads the whole checkpoint as long as `go_on` returns OK, and otherwise returns its error.
// NOT_FOUND: the checkpoint was removed meanwhile. DATA_LOSS: the checkpoint was changed; names the steps of
// the others.
absl::Status MakeForkedFolder(const v1::Job& job, const ForkSource& source, const std::string& folder,
                              const std::function<absl::Status()>& go_on);

// Removes the folder of a fork that got no job.
bool RemoveForkedFolder(const std::string& folder);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_FORKED_FOLDER_H_
