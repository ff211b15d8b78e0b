#ifndef TANDEM_SERVER_SCHEDULER_XID_H_
#define TANDEM_SERVER_SCHEDULER_XID_H_

#include <cstdint>
#include <string>

namespace tandem {

// The meaning of a driver's error number (NVIDIA, "XID Errors", the GPU Deployment and Management
// documentation).
struct XidMeaning {
  // A sentence or two: the error and its remedy. For an unknown number, where to read about it.
  std::string text;
  // True if the GPU, its memory, links or driver is at fault, so that no job should get the GPU until
  // somebody has examined it. False if a program may be at fault.
  bool is_of_hardware = false;
};
XidMeaning MeaningOfXid(int64_t xid);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_XID_H_
