#ifndef TANDEM_SERVER_SWEEPS_RESULTS_H_
#define TANDEM_SERVER_SWEEPS_RESULTS_H_

#include "server/store/records.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem {

// Returns a sweep for clients: its state, counts, best job and one result per job, all computed from its
// jobs. A FAILED job is never the best.
v1::Sweep DescribeSweep(const StoredSweep& stored);

// The same without the results, and without the request's base, grid and random fields.
v1::Sweep DescribeSweep(const ListedSweep& listed);

}  // namespace tandem

#endif  // TANDEM_SERVER_SWEEPS_RESULTS_H_
