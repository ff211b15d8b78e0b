#ifndef TANDEM_SERVER_SCHEDULER_USER_QUOTA_H_
#define TANDEM_SERVER_SCHEDULER_USER_QUOTA_H_

namespace tandem {

// What a user may have at a time; 0: any number.
struct UserQuota {
  int max_devices = 0;
  int max_queued_jobs = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_USER_QUOTA_H_
