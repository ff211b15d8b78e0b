#ifndef TANDEM_SERVER_STORE_SCHEDULING_RECORDS_H_
#define TANDEM_SERVER_STORE_SCHEDULING_RECORDS_H_

#include <cstdint>
#include <string>

#include "tandem/v1/device.pb.h"
#include "tandem/v1/token.pb.h"

namespace tandem {

// Whose jobs are that were submitted with the daemon's token file.
inline constexpr char kAdminUser[] = "admin";

// What a user has used, as of a time.
struct StoredUsage {
  std::string user;
  int64_t device_us = 0;
  int64_t as_of_us = 0;
};

// A user's token.
struct StoredToken {
  v1::Token token;
  // SHA-256 of the secret, in lower-case hexadecimal digits.
  std::string hash;
};

// What is said of a device, whether the daemon has it now or not.
struct StoredDevice {
  // "devices/cpu:0"; of a GPU its UUID, "GPU-...", as its number may become another's.
  std::string name;
  v1::DeviceState state = v1::DEVICE_STATE_ACTIVE;
  std::string message;
  int faults = 0;
  // The last job whose worker crashed on it, "jobs/<id>".
  std::string last_faulty_job;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_SCHEDULING_RECORDS_H_
