#ifndef TANDEM_SERVER_SCHEDULER_USER_QUOTA_H_
#define TANDEM_SERVER_SCHEDULER_USER_QUOTA_H_

#include <cstdint>

namespace tandem {

// What a user may have at a time; 0: any number.
struct UserQuota {
  int max_devices = 0;
  int max_queued_jobs = 0;
  // Streams that are open: watches, logs, uploads, downloads.
  int max_streams = 0;
  // Calls of any kind, on average.
  double calls_per_second = 0;
  // Of the folders of jobs, and of uploads.
  int64_t max_disk_bytes = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_USER_QUOTA_H_
