#ifndef TANDEM_ENGINE_COLLECTIVES_GLOO_GLOO_GROUP_H_
#define TANDEM_ENGINE_COLLECTIVES_GLOO_GLOO_GROUP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/backend/communicator.h"
#include "engine/collectives/gloo/rendezvous.h"

namespace tandem {

struct GlooOptions {
  int rank = 0;
  int world_size = 1;
  // The name or address of this host for the other ranks.
  std::string host = "127.0.0.1";
  // A note about each rank for messages, such as its host. May be empty.
  std::vector<std::string> notes = {};
  // The limit for connecting all ranks.
  absl::Duration connect_timeout = absl::Seconds(60);
  // A silent rank counts as lost after this time, because its process, its host or the network hangs. At
  // least 100 ms.
  absl::Duration silence_limit = absl::Seconds(30);
  // A live rank that keeps others waiting in a call for this time ends the group.
  absl::Duration call_limit = absl::Minutes(30);
};

// Connects this process to a group of processes, on one or several hosts, over TCP and ordinary memory
// (Gloo's transport). Each rank must call it with its own rank. Returns when all are connected. A reduction
// sends and receives 2 (world size - 1) / world size times the buffer's bytes on each rank. Every rank adds a
// slice of all ranks' elements, in the order of ranks, and distributes the sum. Begun reductions run on a
// separate thread (BackgroundCommunicator). A rank that passes null data to another rank's Broadcast drops
// the elements.
//
// A rank ends the group for all others if its process ends without destroying its end, or if it is silent for
// too long. The status is UNAVAILABLE, and its message names the rank. The end is noticed in and outside of
// calls.
//
// If several ranks abort at the same time, each rank keeps the first abort it learns of. From this call on
// SIGPIPE is ignored, unless the process handles it.
//
// `rendezvous` is used during this call alone. INVALID_ARGUMENT if the rank is not in [0, world_size).
// DEADLINE_EXCEEDED if a rank does not connect in time, UNAVAILABLE if it cannot be reached.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectGlooGroup(const GlooOptions& options,
                                                               Rendezvous& rendezvous);

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_GLOO_GLOO_GROUP_H_
