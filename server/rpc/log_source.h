#ifndef TANDEM_SERVER_RPC_LOG_SOURCE_H_
#define TANDEM_SERVER_RPC_LOG_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "server/events/item_source.h"
#include "server/events/subscription.h"
#include "server/rpc/fair_pool.h"
#include "server/rpc/file_watcher.h"
#include "tandem/v1/job_service.pb.h"

namespace tandem {

// A log's path, and how far to read.
struct LogRequest {
  // Neither the file nor its folder need exist yet.
  std::string path;
  // At least 0.
  int64_t offset = 0;
  // If set, reads on until this subscription ends, which happens with the job. If null, stops at the file's
  // end.
  std::unique_ptr<EventSubscription> until_end;
};

// Reads a log in pieces, on `pool`, as `user`. Waits for more without polling: `watcher` and the job's events
// wake it. `pool` and `watcher` must outlive the source. OUT_OF_RANGE: the offset is beyond the end.
std::unique_ptr<ItemSource<v1::ReadLogResponse>> MakeLogSource(LogRequest request, FairPool* pool,
                                                               std::string user, FileWatcher* watcher);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_LOG_SOURCE_H_
