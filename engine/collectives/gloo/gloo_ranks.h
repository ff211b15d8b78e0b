#ifndef TANDEM_ENGINE_COLLECTIVES_GLOO_GLOO_RANKS_H_
#define TANDEM_ENGINE_COLLECTIVES_GLOO_GLOO_RANKS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/backend/communicator.h"
#include "engine/collectives/gloo/gloo_group.h"
#include "engine/collectives/gloo/rendezvous.h"

namespace tandem {

// Connects several ranks of a process, `count` from options.rank on. Entry i is the end of rank options.rank
// + i. Errors as ConnectGlooGroup.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> ConnectGlooRanks(const GlooOptions& options,
                                                                            int count,
                                                                            Rendezvous& rendezvous);

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_GLOO_GLOO_RANKS_H_
