#ifndef TANDEM_SERVER_ADMISSION_KNOWN_DATASETS_H_
#define TANDEM_SERVER_ADMISSION_KNOWN_DATASETS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A public data set with a widely known name.
struct KnownDataset {
  std::string name;
  std::string description;               // One sentence.
  std::vector<std::string> class_names;  // In the order of the labels; may be empty.
  std::string remedy;                    // How to install the set if no data folder has it.
};

// Sorted by name.
const std::vector<KnownDataset>& KnownDatasets();
// Returns null if no set has this name.
const KnownDataset* FindKnownDataset(absl::string_view name);

// Returns the source that the files directly in `folder` form, with full paths; nullopt if none. A source is
// one of:
// - the four IDX files of MNIST ("train-images-idx3-ubyte", "train-labels-idx1-ubyte",
//   "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", each plain or with ".gz");
// - the binary files of CIFAR-10 or CIFAR-100 (plain, or with ".gz" or ".xz");
// - an archive of CIFAR ("cifar-10-binary.tar.gz") or its unpacked folder.
std::optional<v1::DatasetSpec> SourceIn(const std::string& folder);

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_KNOWN_DATASETS_H_
