#ifndef TANDEM_SERVER_JOBS_BOOT_CLOCK_H_
#define TANDEM_SERVER_JOBS_BOOT_CLOCK_H_

#include <string>

#include "engine/base/clock.h"

namespace tandem {

// Returns the machine's clock with an Elapsed() that counts from the boot, including the time that the
// machine is suspended. So several processes of one boot agree. Lives for ever. Thread-safe.
const Clock* BootClock();

// Returns an id that is unique for each boot of the machine. Empty if unknown.
std::string BootId();

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_BOOT_CLOCK_H_
