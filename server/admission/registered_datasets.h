#ifndef TANDEM_SERVER_ADMISSION_REGISTERED_DATASETS_H_
#define TANDEM_SERVER_ADMISSION_REGISTERED_DATASETS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Admission's view of the data sets that users registered. Reads no files. Thread-safe.
class RegisteredDatasets {
 public:
  virtual ~RegisteredDatasets() = default;

  // Returns the daemon's record of the set: name, description, spec and so on, without facts of its files.
  // nullopt if no such set exists.
  virtual std::optional<v1::Dataset> Find(absl::string_view id) const = 0;
  // Returns the set's spec. Paths of uploaded files are absolute and below Folder(). Other paths and URLs are
  // as registered.
  virtual std::optional<v1::DatasetSpec> FindSpec(absl::string_view id) const = 0;
  // Returns all ids, sorted.
  virtual std::vector<std::string> Ids() const = 0;
  // Returns the absolute path of the folder of all uploaded files. Jobs may read a file in this folder only
  // if a registered set leads to the file.
  virtual const std::string& Folder() const = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_REGISTERED_DATASETS_H_
