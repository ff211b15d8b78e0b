#include "server/scheduler/xid.h"

#include <algorithm>
#include <iterator>

namespace tandem {
namespace {

struct Known {
  int64_t xid;
  bool is_of_hardware;
  const char* text;
};

constexpr Known kKnown[] = {
    {8, false, "Work took longer than the driver allows and was stopped."},
    {13, false, "A program used the GPU wrongly, for example read beyond a tensor; it has ended."},
    {31, false, "A program used GPU memory that does not belong to it; it has ended."},
    {32, false, "The driver got commands that make no sense, from a program or over a bad PCIe connection."},
    {38, false, "The driver's own program on the GPU failed; update the driver if it comes again."},
    {43, false, "A program's work on the GPU was stopped because it had failed; the GPU works."},
    {45, false, "The work of a failed or killed program was removed; the GPU works."},
    {48, true,
     "The GPU's memory had an error that could not be corrected (double-bit ECC). Reset the GPU "
     "(nvidia-smi --gpu-reset); if it comes again, have it replaced."},
    {61, false, "The GPU's own controller gave a warning; restart the machine if jobs on it fail."},
    {62, true, "The GPU's own controller has stopped. Restart the machine."},
    {63, false,
     "A bad place in the GPU's memory was found and will be left out after the next reset. Reset the GPU "
     "when it is "
     "free (nvidia-smi --gpu-reset)."},
    {64, true,
     "A bad place in the GPU's memory could not be marked to be left out. Reset the GPU; if it comes again, "
     "have it replaced."},
    {68, false, "The GPU's video decoder failed, which training does not use."},
    {69, false, "A program gave the GPU a command that it does not have; it has ended."},
    {74, true,
     "An NVLink connection of the GPU failed. Check nvidia-smi nvlink --status; reset all GPUs on it, and "
     "have the slot or bridge checked."},
    {79, true,
     "The GPU has fallen off the bus: the driver cannot reach it. Restart the machine; check the GPU's "
     "power, cooling and slot."},
    {92, false,
     "The GPU's memory corrects single errors more often than it should. Results are right; watch it, and "
     "have it replaced if errors come that cannot be corrected."},
    {94, true,
     "The GPU's memory had an error that could not be corrected; the program that was hit has ended, others "
     "were not. Reset the GPU when it is free."},
    {95, true,
     "The GPU's memory had an error that could not be corrected and may have hit any program. Reset the GPU "
     "before it is used again."},
    {109, false, "Changing from one program to another took the GPU too long; the program has ended."},
    {119, true,
     "The GPU's system processor (GSP) did not answer the driver. Reset the GPU, or restart the machine; "
     "update the driver if it comes again."},
    {120, true, "The GPU's system processor (GSP) failed. Reset the GPU, or restart the machine."},
    {140, true,
     "The GPU's memory had errors that could not be corrected. Reset the GPU before it is used again."},
};

}  // namespace

XidMeaning MeaningOfXid(int64_t xid) {
  const auto found = std::find_if(std::begin(kKnown), std::end(kKnown),
                                  [xid](const Known& known) { return known.xid == xid; });
  if (found != std::end(kKnown)) return {found->text, found->is_of_hardware};
  return {"NVIDIA's list of XID errors explains it; dmesg has the driver's text.", false};
}

}  // namespace tandem
