#ifndef TANDEM_SERVER_STORE_SCHEDULING_RECORDS_H_
#define TANDEM_SERVER_STORE_SCHEDULING_RECORDS_H_

#include <cstdint>
#include <string>

#include "tandem/v1/device.pb.h"
#include "tandem/v1/token.pb.h"

namespace tandem {

// The owner of jobs that were submitted with the daemon's token file.
inline constexpr char kAdminUser[] = "admin";

// A user's usage at a time.
struct StoredUsage {
  std::string user;
  int64_t device_us = 0;
  int64_t as_of_us = 0;
};

// A user's token.
struct StoredToken {
  v1::Token token;
  // The secret's SHA-256, in lower-case hexadecimal.
  std::string hash;
};

// The record of a device, which the daemon need not have now.
struct StoredDevice {
  // For example "devices/cpu:0". For a GPU, its UUID "GPU-...", because GPUs may be renumbered.
  std::string name;
  v1::DeviceState state = v1::DEVICE_STATE_ACTIVE;
  std::string message;
  int faults = 0;
  // The last job whose worker crashed on the device, "jobs/<id>".
  std::string last_faulty_job;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_SCHEDULING_RECORDS_H_
