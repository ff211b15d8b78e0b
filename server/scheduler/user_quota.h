#ifndef TANDEM_SERVER_SCHEDULER_USER_QUOTA_H_
#define TANDEM_SERVER_SCHEDULER_USER_QUOTA_H_

#include <cstdint>

namespace tandem {

// A user's limits. 0: no limit.
struct UserQuota {
  int max_devices = 0;
  int max_queued_jobs = 0;
  // Open streams: watches, logs, uploads and downloads.
  int max_streams = 0;
  // Calls of any kind, on average.
  double calls_per_second = 0;
  // Bytes of the folders of jobs and uploads.
  int64_t max_disk_bytes = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_USER_QUOTA_H_
