#ifndef TANDEM_SERVER_SCHEDULER_VISIBLE_GPUS_H_
#define TANDEM_SERVER_SCHEDULER_VISIBLE_GPUS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// Returns the GPUs that CUDA_VISIBLE_DEVICES allows, in its order, as positions in `uuids`. `uuids` are all
// GPUs, in the order of the PCI bus. `text` is the variable's value, parsed like CUDA (CUDA C++ Programming
// Guide, "CUDA Environment Variables"). Entries are numbers or UUIDs ("GPU-8932f937-..."), which may be
// shortened while they stay unique. An invalid entry ends the list, and a repeated entry makes it empty.
// Parts of GPUs ("MIG-...") are not supported.
std::vector<int> VisibleGpus(absl::string_view text, const std::vector<std::string>& uuids);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_VISIBLE_GPUS_H_
