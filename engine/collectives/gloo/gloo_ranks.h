#ifndef TANDEM_ENGINE_COLLECTIVES_GLOO_GLOO_RANKS_H_
#define TANDEM_ENGINE_COLLECTIVES_GLOO_GLOO_RANKS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/backend/communicator.h"
#include "engine/collectives/gloo/gloo_group.h"
#include "engine/collectives/gloo/rendezvous.h"

namespace tandem {

// Several ends in one process, of the ranks from options.rank on: entry i is that of rank options.rank + i.
// Errors are those of ConnectGlooGroup.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> ConnectGlooRanks(const GlooOptions& options,
                                                                            int count,
                                                                            Rendezvous& rendezvous);

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_GLOO_GLOO_RANKS_H_
