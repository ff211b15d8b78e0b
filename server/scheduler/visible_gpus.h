#ifndef TANDEM_SERVER_SCHEDULER_VISIBLE_GPUS_H_
#define TANDEM_SERVER_SCHEDULER_VISIBLE_GPUS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// Which of a machine's GPUs CUDA_VISIBLE_DEVICES lets a process use, and in which order: positions in
// `uuids`, all that there are, in the order of the PCI bus. `text` is the variable's value, read as CUDA does
// (CUDA C++ Programming Guide, "CUDA Environment Variables"): numbers, or UUIDs ("GPU-8932f937-...") that may
// be cut short while they are of one GPU alone. What follows an entry that is neither counts for nothing; an
// entry that comes twice leaves none. Parts of GPUs ("MIG-...") are none that can be used here.
std::vector<int> VisibleGpus(absl::string_view text, const std::vector<std::string>& uuids);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_VISIBLE_GPUS_H_
