#ifndef TANDEM_SERVER_ADMISSION_KNOWN_DATASETS_H_
#define TANDEM_SERVER_ADMISSION_KNOWN_DATASETS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A public data set that many know by its name.
struct KnownDataset {
  std::string name;
  std::string description;               // One sentence.
  std::vector<std::string> class_names;  // In the order of the labels; may be empty.
  std::string remedy;                    // What to do where a data folder does not have it.
};

// By name.
const std::vector<KnownDataset>& KnownDatasets();
// Null where it is not among them.
const KnownDataset* FindKnownDataset(absl::string_view name);

// The source that the files directly in `folder` make, with their full paths: the four IDX files of MNIST
// ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
// each plain or with ".gz"), or the binary files of CIFAR-10 or CIFAR-100 (plain, or with ".gz" or ".xz"), or
// one of their archives ("cifar-10-binary.tar.gz"), or the folder that comes out of it. None where it has
// none of them.
std::optional<v1::DatasetSpec> SourceIn(const std::string& folder);

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_KNOWN_DATASETS_H_
