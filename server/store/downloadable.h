#ifndef TANDEM_SERVER_STORE_DOWNLOADABLE_H_
#define TANDEM_SERVER_STORE_DOWNLOADABLE_H_

#include <cstdint>
#include <optional>

#include "server/store/records.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// A measurement of `job.best`'s metric.
struct Measured {
  double value;
  // Optimizer steps before the measurement.
  int64_t step;
};

// The weights that a download of a job returns or will return, and the measurement that ranks them.
struct Downloadable {
  // The artifact's name; a constant.
  const char* artifact;
  // If a job is stopped between two measurements, its last weights are of a later step.
  Measured measured;
  // Optimizer steps of the weights. 0 if not known.
  int64_t step;
};

// Returns nullopt if nothing was measured, or the job has ended without a model. Does not read the job's
// spec.
std::optional<Downloadable> DownloadableOf(const StoredJob& row);

// Returns the newest measurement; nullopt if none.
std::optional<Measured> LastMeasured(const v1::Job& job);

// Returns true if a job with this spec keeps the weights of its best result (StoredJob::keeps_best).
bool KeepsBest(const v1::JobSpec& spec);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_DOWNLOADABLE_H_
