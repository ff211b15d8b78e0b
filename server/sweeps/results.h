#ifndef TANDEM_SERVER_SWEEPS_RESULTS_H_
#define TANDEM_SERVER_SWEEPS_RESULTS_H_

#include "server/store/records.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem {

// A sweep as clients see it: with its state, its counts, its best job and one result for each of its jobs,
// all of which follow from its jobs. What a job that FAILED had measured makes it no best one.
v1::Sweep DescribeSweep(const StoredSweep& stored);

// The same without the results, and without what was asked for: base, grid and random.
v1::Sweep DescribeSweep(const ListedSweep& listed);

}  // namespace tandem

#endif  // TANDEM_SERVER_SWEEPS_RESULTS_H_
