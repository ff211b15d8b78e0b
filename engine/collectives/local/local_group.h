#ifndef TANDEM_ENGINE_COLLECTIVES_LOCAL_LOCAL_GROUP_H_
#define TANDEM_ENGINE_COLLECTIVES_LOCAL_LOCAL_GROUP_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "engine/backend/communicator.h"

namespace tandem {

// Returns the communicators of the threads of a process over ordinary memory. Entry r is rank r's end. All
// ranks reduce in place, each in its own slice of all ranks' elements.
//
// A rank can begin up to 64 reductions ahead of the slowest rank without blocking. Further ones block. A rank
// does its slice when all ranks have begun the reduction: at once, or in its next call. A rank that awaits
// the reduction does missing slices itself.
//
// A rank that passes null data to another rank's Broadcast receives no elements.
//
// Ends may be used and destroyed by different threads. A waiting rank spins briefly, then yields for up to a
// millisecond, then sleeps. `world_size` is at least 1. If ranks wait for others for `watchdog`, the group is
// aborted with DEADLINE_EXCEEDED, and the message names the missing ranks.
std::vector<std::unique_ptr<Communicator>> CreateLocalGroup(
    int world_size, absl::Duration watchdog = absl::InfiniteDuration());

// Returns a number that all ranks of the group share, at first 0. The group does not use the number. It lives
// as long as an end of the group. Returns null for the end of any other group.
std::atomic<int64_t>* SharedWordOf(const Communicator* end);

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_LOCAL_LOCAL_GROUP_H_
