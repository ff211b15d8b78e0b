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

// Finds the data that jobs may use: sets known by name, and files inside the data folders. Lists the folders
// at each call, so that sets can be added while the daemon runs. Decodes no file. Thread-safe.
//
// A subfolder of a data folder that holds a source (SourceIn) is a set, and the subfolder's name is the set's
// name. If two data folders have a set of the same name, the first folder wins.
class DatasetCatalog {
 public:
  // A folder may be missing at first. `reader` reads the files, because files may be hostile; without a
  // reader, only data without files can be described. `reader` must outlive this object. `durable` keeps the
  // files' facts.
  explicit DatasetCatalog(std::vector<std::string> data_folders, DatasetReader* reader = nullptr,
                          DurableFacts durable = {});
  DatasetCatalog(const DatasetCatalog&) = delete;
  DatasetCatalog& operator=(const DatasetCatalog&) = delete;

  // Adds registered sets, which hide sets of the same name in data folders. Call before any other method.
  // `registered` must outlive this object.
  void SetRegistered(const RegisteredDatasets* registered) { registered_ = registered; }

  // Allows data named by URLs. `public_folder` is a data folder that holds the fetched public sets. Call
  // before any other method. `remote` must outlive this object.
  void SetRemote(const RemoteData* remote, std::string public_folder) {
    remote_ = remote;
    public_folder_ = std::move(public_folder);
  }

  const std::vector<std::string>& data_folders() const { return data_folders_; }

  // Returns `spec` with a source in addition to its name. Adds the class names of a public set. Adds a
  // registered set's normalization, validation_split and class_names if `spec` has none. Leaves paths and
  // URLs as they are. INVALID_ARGUMENT names the wrong fields, relative to the spec: `spec` has neither or
  // both of name and source, or the name is unknown. A close name is suggested.
  absl::StatusOr<v1::DatasetSpec> Expand(const v1::DatasetSpec& spec) const;

  // Returns Expand's spec with absolute paths without symbolic links. Each path is inside a data folder,
  // among the named set's uploaded files, or in the cache if the path was a URL. INVALID_ARGUMENT names the
  // wrong fields, relative to the spec ("name", "idx.train_images"): like Expand, or a file is missing or not
  // in an allowed folder.
  absl::StatusOr<v1::DatasetSpec> Resolve(const v1::DatasetSpec& spec) const;
  // Like Resolve, for a spec that already has a source. If `uploaded`, paths may lead to uploaded files.
  absl::StatusOr<v1::DatasetSpec> ResolvePaths(v1::DatasetSpec spec, bool uploaded) const;

  // Returns the absolute path, without symbolic links, of a file inside a data folder. For a URL, returns the
  // path of the file in the cache. INVALID_ARGUMENT otherwise.
  absl::StatusOr<std::string> ResolveFile(const std::string& path) const;

  // Returns the description of a resolved spec, matched to `model` if not null. The description is kept until
  // one of the files changes. Concurrent calls for the same data share one reading. The result has the first
  // class_names, and no columns or notices. Errors are those of DatasetReader::Read.
  absl::StatusOr<DatasetInfo> Describe(const v1::DatasetSpec& resolved,
                                       const DataNames* model = nullptr) const;

  // Reads all samples of a resolved spec with a source. INVALID_ARGUMENT names the first place of a number
  // that is not finite, or of a label that is no class. Other errors are those of Describe.
  absl::Status CheckSamples(const v1::DatasetSpec& resolved) const;

  // Lists sets sorted by name, without class names: at most `most`, from index `begin` on. A set that cannot
  // be used has its problem. If the sets together exceed `most_bytes`, the list ends after the set that
  // exceeds the limit. Fashion-MNIST is always listed; if it is missing, its problem says how to install it.
  std::vector<v1::Dataset> List(size_t begin, size_t most, size_t most_bytes) const;

  // Returns the set of this id or full name. NOT_FOUND if no such set exists. If the set cannot be read now,
  // the result's problem says so.
  absl::StatusOr<v1::Dataset> DescribeById(const std::string& name) const;

  // Like DescribeById, plus the counts, means and deviations from a whole reading, or the reason why they are
  // missing. These results are kept until one of the files changes. Other errors, such as UNAVAILABLE, are
  // those of DatasetReader::Read and say nothing about the set.
  absl::StatusOr<v1::Dataset> Get(const std::string& name) const;

 private:
  // A reading task and the key of its result.
  struct Question {
    internal::v1::DataTask task;
    // Covers the task, the files' sizes and times of change, and the reader's version.
    std::string digest;
    KnownFacts::Place place;
  };
  static absl::StatusOr<Question> Ask(internal::v1::DataTask task, KnownFacts::Place place);
  // Returns the user who registered the set of this id; "" if none.
  std::string OwnerOf(const std::string& id) const;
  // Returns the known facts, or reads the files.
  KnownFacts::Facts Answer(const Question& question) const;
  absl::StatusOr<DatasetInfo> Describe(const v1::DatasetSpec& resolved, const DataNames* model,
                                       KnownFacts::Place place) const;

  // A reading in progress. Other callers of the same question wait for `facts`.
  struct Reading {
    Mutex mutex;
    std::optional<KnownFacts::Facts> facts ABSL_GUARDED_BY(mutex);
  };

  static void AddCounts(const KnownFacts::Facts& facts, v1::Dataset* dataset);

  // Returns the folder of each set, by name.
  std::map<std::string, std::string> Find() const;
  // Returns the source of the files in the set's folder. INVALID_ARGUMENT as Expand.
  absl::StatusOr<v1::DatasetSpec> ExpandFolder(const std::string& name, const v1::DatasetSpec& spec) const;
  // If `uploaded`, the path may lead to an uploaded file.
  absl::StatusOr<std::string> ResolvePath(const std::string& path, PathKind kind, bool uploaded) const;
  // Resolves a pattern of shards. All of its shards must be allowed files.
  absl::StatusOr<std::string> ResolvePattern(const std::string& text, bool uploaded) const;
  enum class ClassNames { kShown, kLeftOut };
  // A set, and the error if the set cannot be read now. The set's problem then repeats the error.
  struct Described {
    v1::Dataset dataset;
    absl::Status reading;
  };
  // NOT_FOUND as DescribeById.
  absl::StatusOr<Described> FindDescribed(const std::string& name) const;
  Described DescribeNamed(const std::string& name, const std::string& folder, ClassNames names) const;
  Described DescribeRegistered(v1::Dataset dataset, ClassNames names) const;
  // Adds the facts of the set's files, or the set's problem. Returns an error if the set cannot be read now.
  absl::Status AddDescription(const std::string& id, ClassNames names, v1::Dataset* dataset) const;

  const std::vector<std::string> data_folders_;
  const RegisteredDatasets* registered_ = nullptr;
  const RemoteData* remote_ = nullptr;
  std::string public_folder_;
  DatasetReader* const reader_;
  mutable KnownFacts known_;
  mutable Mutex readings_mutex_;
  // Keyed by Question::digest.
  mutable std::map<std::string, std::shared_ptr<Reading>> readings_ ABSL_GUARDED_BY(readings_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_DATASET_CATALOG_H_
