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

// The files of jobs that go on from other jobs' checkpoints.

namespace tandem::rpc {

// A checkpoint of another job.
struct ForkSource {
  std::string path;
  // As its file says; with the name that it has in a fork's folder.
  v1::Checkpoint checkpoint;
  // The best result so far; empty where there is none.
  v1::BestResult best;
  // By which the checkpoint's model knows its data.
  DataNames names;
  SafetensorsHeader header;
};

// The memory that it takes.
int64_t BytesOf(const ForkSource& source);

// The newest checkpoint in the job's folder, or the one of `step`, by what its header says: a worker that was
// taken over may have given it any size. NOT_FOUND, with the steps of those that are there; DATA_LOSS, with
// those of the others, where it cannot be used.
absl::StatusOr<ForkSource> FindForkSource(const v1::Job& job, std::optional<int64_t> step);

// Makes the folder of a fork of `job`, in which the checkpoint stands, and the best model too where its file
// says that it is that of the checkpoint's best result; durable on OK. What is there is not the other job's
// to remove. Reads all of the checkpoint, for as long as `go_on` is OK, whose error it returns otherwise.
// NOT_FOUND: the checkpoint was removed meanwhile. DATA_LOSS: its bytes were changed; with the steps of the
// others.
absl::Status MakeForkedFolder(const v1::Job& job, const ForkSource& source, const std::string& folder,
                              const std::function<absl::Status()>& go_on);

// Removes it where there is no job of it.
bool RemoveForkedFolder(const std::string& folder);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_FORKED_FOLDER_H_
