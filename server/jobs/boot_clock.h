#ifndef TANDEM_SERVER_JOBS_BOOT_CLOCK_H_
#define TANDEM_SERVER_JOBS_BOOT_CLOCK_H_

#include <string>

#include "engine/base/clock.h"

namespace tandem {

// The machine's clock, with an Elapsed() that counts from the boot and goes on while the machine is
// suspended, so that several processes of one boot agree on it. Lives for ever. Thread-safe.
const Clock* BootClock();

// Says which boot this is: no two have the same. Empty: nobody knows.
std::string BootId();

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_BOOT_CLOCK_H_
