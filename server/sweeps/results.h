#ifndef TANDEM_SERVER_SWEEPS_RESULTS_H_
#define TANDEM_SERVER_SWEEPS_RESULTS_H_

#include "server/store/records.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem {

// Whether a sweep is shown with one result for each of its jobs.
enum class SweepResults { kShown, kLeftOut };

// A sweep as clients see it: with its state, its counts, its best job and its results, all of which follow
// from its jobs. What a job that FAILED had measured makes it no best one.
v1::Sweep DescribeSweep(const StoredSweep& stored, SweepResults results);

}  // namespace tandem

#endif  // TANDEM_SERVER_SWEEPS_RESULTS_H_
