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
  // The name or address of this host by which the other ranks reach it.
  std::string host = "127.0.0.1";
  // What is said of each rank beside its number where it is named, such as its host; may be empty.
  std::vector<std::string> notes = {};
  // For all ranks to come together.
  absl::Duration connect_timeout = absl::Seconds(60);
  // A rank that is not heard of for so long counts as lost, whatever it was doing: its process, its host or
  // the network hangs. At least 100 ms.
  absl::Duration silence_limit = absl::Seconds(30);
  // A rank that is alive but has not come to a call for so long, while others wait for it there, ends the
  // group.
  absl::Duration call_limit = absl::Minutes(30);
};

// This process's end of a group of processes, on one host or several, over ordinary memory and TCP (Gloo's
// transport). Called by all ranks, each with its own rank; returns when all are connected. A reduction takes
// 2 (world size - 1) / world size times the buffer's bytes on each rank's wire in each direction: every rank
// adds one slice of everyone's elements, in the order of ranks, and hands out the sum. One that was begun
// goes on in a thread of its own (BackgroundCommunicator).
//
// A rank whose process ends without having destroyed its end, or that is silent for too long, ends the group
// for all others, in a call or not, with UNAVAILABLE and a message that names the rank.
//
// Of aborts by several ranks at one time, each rank keeps the first that it hears of. SIGPIPE is ignored from
// then on, unless the process handles it.
//
// `rendezvous` is used during this call alone. INVALID_ARGUMENT where the rank is not one of the world's;
// DEADLINE_EXCEEDED where a rank does not come, UNAVAILABLE where it cannot be reached.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectGlooGroup(const GlooOptions& options,
                                                               Rendezvous& rendezvous);

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_GLOO_GLOO_GROUP_H_
