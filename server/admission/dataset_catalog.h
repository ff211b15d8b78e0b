#ifndef TANDEM_SERVER_ADMISSION_DATASET_CATALOG_H_
#define TANDEM_SERVER_ADMISSION_DATASET_CATALOG_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/data/dataset.h"
#include "engine/data/source_paths.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// The data that jobs may use: sets known by name, and files inside the data folders. Looks at the folders
// anew each time, so that a set can be added while the daemon runs. Thread-safe; reads files.
//
// A set is known where a subfolder of a data folder holds one of the sources of SourceIn: MNIST's IDX files,
// or CIFAR's binary files; its name is the subfolder's. Where two data folders have one of the same name, the
// first counts.
class DatasetCatalog {
 public:
  // Folders that are not there now are allowed: they may come.
  explicit DatasetCatalog(std::vector<std::string> data_folders);
  DatasetCatalog(const DatasetCatalog&) = delete;
  DatasetCatalog& operator=(const DatasetCatalog&) = delete;

  // As configured.
  const std::vector<std::string>& data_folders() const { return data_folders_; }

  // `spec` with a source whose paths are absolute, free of symbolic links and inside a data folder; a name
  // becomes the files that it stands for, with names of classes where it is a public set's, and is kept.
  // INVALID_ARGUMENT with the fields at fault relative to the spec ("name", "idx.train_images"): neither or
  // both of a name and a source, a name that is not known (a close one is suggested), a file that is missing
  // or outside the data folders.
  absl::StatusOr<v1::DatasetSpec> Resolve(const v1::DatasetSpec& spec) const;

  // The absolute path, free of symbolic links, of a file that is inside a data folder. INVALID_ARGUMENT
  // otherwise.
  absl::StatusOr<std::string> ResolveFile(const std::string& path) const {
    return ResolvePath(path, PathKind::kFile);
  }

  // DescribeDataset of a resolved spec; remembered until one of its files changes.
  absl::StatusOr<DatasetInfo> Describe(const v1::DatasetSpec& resolved) const;

  // All sets known by name, by name; one that cannot be used with its problem. Fashion-MNIST is always among
  // them, with the way to install it where it is missing.
  std::vector<v1::Dataset> List() const;

  // One of them, by its id or full name, with the counts, means and deviations that reading it whole gives;
  // these are remembered until one of its files changes. NOT_FOUND where there is none of this name.
  absl::StatusOr<v1::Dataset> Get(const std::string& name) const;

 private:
  struct Described {
    std::string files;  // Sizes and times of change.
    absl::StatusOr<DatasetInfo> info;
  };

  // Name to folder.
  std::map<std::string, std::string> Find() const;
  absl::StatusOr<std::string> ResolvePath(const std::string& path, PathKind kind) const;
  v1::Dataset DescribeNamed(const std::string& name, const std::string& folder) const;

  const std::vector<std::string> data_folders_;
  mutable Mutex mutex_;
  // By serialized spec.
  mutable std::map<std::string, Described> described_ ABSL_GUARDED_BY(mutex_);
  // By id: the fingerprint of its files, and what Get adds to it.
  mutable std::map<std::string, std::pair<std::string, v1::Dataset>> counted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_DATASET_CATALOG_H_
