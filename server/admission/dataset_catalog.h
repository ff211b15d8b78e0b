#ifndef TANDEM_SERVER_ADMISSION_DATASET_CATALOG_H_
#define TANDEM_SERVER_ADMISSION_DATASET_CATALOG_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/data/dataset.h"
#include "engine/data/source_paths.h"
#include "server/admission/dataset_reader.h"
#include "server/admission/known_facts.h"
#include "server/admission/registered_datasets.h"
#include "server/admission/remote_data.h"
#include "tandem/internal/v1/data_facts.pb.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// The data that jobs may use: sets known by name, and files inside the data folders. Looks at the folders
// anew each time, so that a set can be added while the daemon runs. Thread-safe. It looks at folders and
// files, and decodes no file.
//
// A set is known where a subfolder of a data folder holds one of the sources of SourceIn: MNIST's IDX files,
// or CIFAR's binary files; its name is the subfolder's. Where two data folders have one of the same name, the
// first counts.
class DatasetCatalog {
 public:
  // Folders that are not there now are allowed: they may come. `reader` reads the files, since they may be
  // hostile; without it nothing can be described but what has no files. It outlives this. `durable` keeps
  // what files say.
  explicit DatasetCatalog(std::vector<std::string> data_folders, DatasetReader* reader = nullptr,
                          DurableFacts durable = {});
  DatasetCatalog(const DatasetCatalog&) = delete;
  DatasetCatalog& operator=(const DatasetCatalog&) = delete;

  // Before anything else is called, where there are any; they outlive this. They count before those in data
  // folders.
  void SetRegistered(const RegisteredDatasets* registered) { registered_ = registered; }

  // The same of data that is named by URLs, of which there is none without it; `public_folder`, one of the
  // data folders, has the public sets that were fetched.
  void SetRemote(const RemoteData* remote, std::string public_folder) {
    remote_ = remote;
    public_folder_ = std::move(public_folder);
  }

  // As configured.
  const std::vector<std::string>& data_folders() const { return data_folders_; }

  // `spec` with the source that its name stands for, with names of classes where it is a public set's, and a
  // registered set's normalization, validation_split and class_names where it has none of its own; the name
  // is kept. Paths are left as they are, URLs too. INVALID_ARGUMENT with the fields at fault relative to the
  // spec: neither or both of a name and a source, a name that is not known (a close one is suggested).
  absl::StatusOr<v1::DatasetSpec> Expand(const v1::DatasetSpec& spec) const;

  // Expand's spec, whose paths are absolute, free of symbolic links and inside a data folder, or among the
  // files that were uploaded for the set that is named, or in the cache where they were URLs.
  // INVALID_ARGUMENT with the fields at fault relative to the spec ("name", "idx.train_images"): as Expand,
  // or a file that is missing or elsewhere.
  absl::StatusOr<v1::DatasetSpec> Resolve(const v1::DatasetSpec& spec) const;
  // The same of a spec that has a source already; `uploaded`: paths may lead to uploaded files.
  absl::StatusOr<v1::DatasetSpec> ResolvePaths(v1::DatasetSpec spec, bool uploaded) const;

  // The absolute path, free of symbolic links, of a file that is inside a data folder. INVALID_ARGUMENT
  // otherwise.
  absl::StatusOr<std::string> ResolveFile(const std::string& path) const;

  // DescribeDataset of a resolved spec, matched to `model` if it is not null; remembered until one of its
  // files changes. Calls at once that ask for the same are one reading. Of class_names it has the first ones,
  // of columns and notices none. Errors are DatasetReader::Read's.
  absl::StatusOr<DatasetInfo> Describe(const v1::DatasetSpec& resolved,
                                       const DataNames* model = nullptr) const;

  // Of all sets known by name, in the order of their names, at most `most` from number `begin` (from 0) on,
  // without the names of their classes; one that cannot be used with its problem. If the sets have more than
  // `most_bytes` together, the list ends one set after these bytes. Fashion-MNIST is always among all sets,
  // with the way to install it where it is missing.
  std::vector<v1::Dataset> List(size_t begin, size_t most, size_t most_bytes) const;

  // One of them, by its id or full name. NOT_FOUND where there is none of this name. That it cannot be read
  // now is its problem, too.
  absl::StatusOr<v1::Dataset> DescribeById(const std::string& name) const;

  // The same, with the counts, means and deviations that reading it whole gives, or why they cannot be had;
  // these are remembered until one of its files changes. Errors that say nothing of the set, such as
  // UNAVAILABLE, are DatasetReader::Read's.
  absl::StatusOr<v1::Dataset> Get(const std::string& name) const;

 private:
  // What files are asked.
  struct Question {
    internal::v1::DataTask task;
    // Of the task, of the files' sizes and times of change, and of the reader's version.
    std::string digest;
    KnownFacts::Place place;
  };
  static absl::StatusOr<Question> Ask(internal::v1::DataTask task, KnownFacts::Place place);
  // Who registered the set of this id; "" if nobody did.
  std::string OwnerOf(const std::string& id) const;
  // What is known, or else is read.
  KnownFacts::Facts Answer(const Question& question) const;
  absl::StatusOr<DatasetInfo> Describe(const v1::DatasetSpec& resolved, const DataNames* model,
                                       KnownFacts::Place place) const;

  // A reading under way.
  struct Reading {
    Mutex mutex;
    std::optional<KnownFacts::Facts> facts ABSL_GUARDED_BY(mutex);
  };

  static void AddCounts(const KnownFacts::Facts& facts, v1::Dataset* dataset);

  // Name to folder.
  std::map<std::string, std::string> Find() const;
  // The source of the files in a folder of this name. INVALID_ARGUMENT as Expand.
  absl::StatusOr<v1::DatasetSpec> ExpandFolder(const std::string& name, const v1::DatasetSpec& spec) const;
  // `uploaded`: it may be one that was uploaded, too.
  absl::StatusOr<std::string> ResolvePath(const std::string& path, PathKind kind, bool uploaded) const;
  enum class ClassNames { kShown, kLeftOut };
  // A set, and why it could not be read now, which is its problem until it can.
  struct Described {
    v1::Dataset dataset;
    absl::Status reading;
  };
  // NOT_FOUND as DescribeById.
  absl::StatusOr<Described> FindDescribed(const std::string& name) const;
  Described DescribeNamed(const std::string& name, const std::string& folder, ClassNames names) const;
  Described DescribeRegistered(v1::Dataset dataset, ClassNames names) const;
  // Adds what its files say, or its problem. Errors: it cannot be read now.
  absl::Status AddDescription(const std::string& id, ClassNames names, v1::Dataset* dataset) const;

  const std::vector<std::string> data_folders_;
  const RegisteredDatasets* registered_ = nullptr;
  const RemoteData* remote_ = nullptr;
  std::string public_folder_;
  DatasetReader* const reader_;
  mutable KnownFacts known_;
  mutable Mutex readings_mutex_;
  // By Question::digest.
  mutable std::map<std::string, std::shared_ptr<Reading>> readings_ ABSL_GUARDED_BY(readings_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_DATASET_CATALOG_H_
