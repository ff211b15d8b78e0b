#ifndef TANDEM_SERVER_ADMISSION_REGISTERED_DATASETS_H_
#define TANDEM_SERVER_ADMISSION_REGISTERED_DATASETS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Data sets that were registered under a name, as admission sees them. Thread-safe; reads no files.
class RegisteredDatasets {
 public:
  virtual ~RegisteredDatasets() = default;

  // What the daemon keeps of the set of this id: name, description, spec and so on, but nothing that follows
  // from its files. None where there is none of this id.
  virtual std::optional<v1::Dataset> Find(absl::string_view id) const = 0;
  // Its spec, in which paths of files that were uploaded for it are absolute, below Folder(); other paths and
  // URLs are as they were registered.
  virtual std::optional<v1::DatasetSpec> FindSpec(absl::string_view id) const = 0;
  // The ids of all of them, sorted.
  virtual std::vector<std::string> Ids() const = 0;
  // The folder of all uploaded files, absolute. Jobs may read from it what a set leads them to, and nothing
  // by its path.
  virtual const std::string& Folder() const = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_REGISTERED_DATASETS_H_
