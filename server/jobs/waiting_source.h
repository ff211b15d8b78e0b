#ifndef TANDEM_SERVER_JOBS_WAITING_SOURCE_H_
#define TANDEM_SERVER_JOBS_WAITING_SOURCE_H_

#include <optional>
#include <string>

#include "tandem/v1/job.pb.h"

namespace tandem {

// Explains why queued jobs wait, and why other jobs wait for a cluster. Thread-safe.
class WaitingSource {
 public:
  virtual ~WaitingSource() = default;
  // Returns why the job waits; nullopt if the scheduler has not considered the job. With `may_look`, first
  // examines the queue again if something changed, which takes milliseconds for a long queue. Otherwise the
  // answer may be slightly old.
  virtual std::optional<v1::Waiting> WaitingOf(const std::string& job_id, bool may_look) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_WAITING_SOURCE_H_
