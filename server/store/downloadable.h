#ifndef TANDEM_SERVER_STORE_DOWNLOADABLE_H_
#define TANDEM_SERVER_STORE_DOWNLOADABLE_H_

#include <optional>

#include "server/store/records.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The weights that a download of a job returns or will return, and their value of the objective.
struct Downloadable {
  // The artifact's name; a constant.
  const char* artifact;
  double value;
};

// Returns nullopt if nothing was measured, or the job has ended without a model. Does not read the job's
// spec.
std::optional<Downloadable> DownloadableOf(const StoredJob& row);

// Returns the newest value of `job.best`'s metric; nullopt if none.
std::optional<double> LastValue(const v1::Job& job);

// Returns true if a job with this spec keeps the weights of its best result (StoredJob::keeps_best).
bool KeepsBest(const v1::JobSpec& spec);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_DOWNLOADABLE_H_
