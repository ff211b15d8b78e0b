#ifndef TANDEM_SERVER_JOBS_WAITING_SOURCE_H_
#define TANDEM_SERVER_JOBS_WAITING_SOURCE_H_

#include <optional>
#include <string>

#include "tandem/v1/job.pb.h"

namespace tandem {

// Says why queued jobs wait. Thread-safe.
class WaitingSource {
 public:
  virtual ~WaitingSource() = default;
  // Why the job waits; nothing where nobody has looked at it. With `may_look` the queue is looked through
  // where something has changed, which takes milliseconds in a long one; otherwise the answer may be of a
  // moment ago.
  virtual std::optional<v1::Waiting> WaitingOf(const std::string& job_id, bool may_look) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_WAITING_SOURCE_H_
