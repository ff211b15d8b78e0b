#ifndef TANDEM_SERVER_STORE_DOWNLOADABLE_H_
#define TANDEM_SERVER_STORE_DOWNLOADABLE_H_

#include <optional>

#include "server/store/records.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The weights of a job that a download returns, or will return, and the objective's value of these weights.
struct Downloadable {
  // The artifact's name; lives for ever.
  const char* artifact;
  double value;
};

// Returns none if nothing was measured, or the job has ended without a model. The job's spec is not read.
std::optional<Downloadable> DownloadableOf(const StoredJob& row);

// Returns the newest measurement of the measure that `job.best` is the best value of, if there is any.
std::optional<double> LastValue(const v1::Job& job);

// Whether a job with this spec keeps the weights of its best result: StoredJob::keeps_best.
bool KeepsBest(const v1::JobSpec& spec);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_DOWNLOADABLE_H_
