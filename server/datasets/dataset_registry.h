#ifndef TANDEM_SERVER_DATASETS_DATASET_REGISTRY_H_
#define TANDEM_SERVER_DATASETS_DATASET_REGISTRY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "server/admission/dataset_catalog.h"
#include "server/admission/registered_datasets.h"
#include "server/datasets/uploads.h"
#include "server/store/store.h"
#include "tandem/v1/dataset_service.pb.h"

namespace tandem {

// The data sets that the daemon keeps under names: what DatasetService's methods about them do. Thread-safe;
// Create and Delete read files and wait for the store.
class DatasetRegistry : public RegisteredDatasets {
 public:
  // While it lives, the set that was named when it was made is not removed: for the time in which a job that
  // names it is being accepted.
  class Hold;

  // All pointers outlive this. `public_folder` holds the public sets that were fetched.
  DatasetRegistry(Store* store, Uploads* uploads, const DatasetCatalog* catalog, const Clock* clock,
                  std::string public_folder);

  // Takes over what the store has. Before anything else.
  void Restore(std::vector<StoredDataset> datasets);

  // The set that an earlier request of this request id made, where there is one. ALREADY_EXISTS: that request
  // was another user's, or another one.
  absl::StatusOr<std::optional<v1::Dataset>> FindRepeated(const v1::CreateDatasetRequest& request,
                                                          const std::string& user) const;
  // As DatasetService.CreateDataset, for a user; `spec` is the request's with its URLs pinned. Whose the
  // upload is, is not looked at.
  absl::StatusOr<v1::Dataset> Create(const v1::CreateDatasetRequest& request, const v1::DatasetSpec& spec,
                                     const std::string& user);
  // As DatasetService.DeleteDataset, whoever asks for it.
  absl::Status Delete(const v1::DeleteDatasetRequest& request);

  // For an id or a name; also where there is no such set.
  Hold HoldFor(const std::string& name_or_id);

  std::optional<v1::Dataset> Find(absl::string_view id) const override;
  std::optional<v1::DatasetSpec> FindSpec(absl::string_view id) const override;
  std::vector<std::string> Ids() const override;
  const std::string& Folder() const override { return uploads_->folder(); }

  // All of them as Find gives them, by name.
  std::vector<v1::Dataset> List() const;

 private:
  // An id that nobody else may give or take away meanwhile.
  class Claim;

  // Of a set.
  struct Holds {
    int active = 0;
    int64_t made = 0;  // Ever, or since there was none.
  };

  absl::Status CheckName(const std::string& id, const std::string& user) const;
  // Checks the source as a job's; errors are relative to the spec.
  absl::StatusOr<DatasetInfo> CheckData(const v1::DatasetSpec& spec, const std::string& upload) const;
  // Writes to the store, and waits until that is durable.
  absl::Status Write(Store::Body body);
  absl::Status Insert(const StoredDataset& dataset);
  // Calls `remove` unless a job that has not ended uses the set.
  absl::Status DeleteUnused(const std::string& id, absl::FunctionRef<absl::Status()> remove);
  // A set that is not registered: one that was fetched is removed.
  absl::Status DeleteOther(const std::string& id, const v1::DeleteDatasetRequest& request);

  Store* const store_;
  Uploads* const uploads_;
  const DatasetCatalog* const catalog_;
  const Clock* const clock_;
  const std::string public_folder_;

  mutable Mutex mutex_;
  std::map<std::string, StoredDataset, std::less<>> datasets_ ABSL_GUARDED_BY(mutex_);
  // Those that are being made or removed.
  std::set<std::string> changing_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Holds> holds_ ABSL_GUARDED_BY(mutex_);
};

class DatasetRegistry::Hold {
 public:
  Hold() = default;
  Hold(Hold&& other) noexcept { *this = std::move(other); }
  Hold& operator=(Hold&& other) noexcept {
    std::swap(registry_, other.registry_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hold();

 private:
  friend class DatasetRegistry;
  DatasetRegistry* registry_ = nullptr;
  std::string id_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_DATASET_REGISTRY_H_
