#ifndef TANDEM_SERVER_SCHEDULER_XID_H_
#define TANDEM_SERVER_SCHEDULER_XID_H_

#include <cstdint>
#include <string>

namespace tandem {

// What one of the driver's error numbers means (NVIDIA, "XID Errors", the GPU Deployment and Management
// documentation).
struct XidMeaning {
  // A sentence or two: what it is, and what to do. Of a number that is not known here, where to look.
  std::string text;
  // The GPU, its memory, its links or its driver is at fault, so that no job should have it until someone has
  // looked. Otherwise a program may be, and the GPU goes on.
  bool is_of_hardware = false;
};
XidMeaning MeaningOfXid(int64_t xid);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_XID_H_
