#ifndef TANDEM_ENGINE_COLLECTIVES_LOCAL_LOCAL_GROUP_H_
#define TANDEM_ENGINE_COLLECTIVES_LOCAL_LOCAL_GROUP_H_

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "engine/backend/communicator.h"

namespace tandem {

// Communicators of the threads of one process over ordinary memory: entry r is rank r's end. A reduction is
// done in place, by all ranks, each on a slice of its own of everyone's elements. What was begun waits for
// nobody: a rank does its slice when all have begun the reduction, then or within its next call, or another
// does it that awaits it; up to 64 can be begun ahead of the slowest rank. Ends may be used and destroyed by
// different threads; a rank that waits spins briefly, then yields for up to a millisecond, then sleeps.
// `world_size` is at least 1. Where ranks have waited for others for as long as `watchdog`, the group is
// aborted with DEADLINE_EXCEEDED, which names those that have not come.
std::vector<std::unique_ptr<Communicator>> CreateLocalGroup(
    int world_size, absl::Duration watchdog = absl::InfiniteDuration());

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_LOCAL_LOCAL_GROUP_H_
