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

// The data sets that users registered, and the work of DatasetService's methods for them. Thread-safe. Create
// and Delete read files and block on the store.
class DatasetRegistry : public RegisteredDatasets {
 public:
  // Keeps a set from being removed while a job that names the set is being accepted.
  class Hold;

  // All pointers must outlive this object. `public_folder` holds the fetched public sets.
  DatasetRegistry(Store* store, Uploads* uploads, const DatasetCatalog* catalog, const Clock* clock,
                  std::string public_folder);

  // Takes over the store's sets. Call before any other method.
  void Restore(std::vector<StoredDataset> datasets);

  // Returns the set that an earlier request with this request id created; nullopt if none. ALREADY_EXISTS:
  // another user used the request id, or the earlier request was different.
  absl::StatusOr<std::optional<v1::Dataset>> FindRepeated(const v1::CreateDatasetRequest& request,
                                                          const std::string& user) const;
  // Like DatasetService.CreateDataset, for `user`. `spec` is the request's spec with pinned URLs. Does not
  // check the upload's owner.
  absl::StatusOr<v1::Dataset> Create(const v1::CreateDatasetRequest& request, const v1::DatasetSpec& spec,
                                     const std::string& user);
  // Like DatasetService.DeleteDataset. Does not check the caller's rights.
  absl::Status Delete(const v1::DeleteDatasetRequest& request);

  // Takes an id or a name. The set need not exist.
  Hold HoldFor(const std::string& name_or_id);

  std::optional<v1::Dataset> Find(absl::string_view id) const override;
  std::optional<v1::DatasetSpec> FindSpec(absl::string_view id) const override;
  std::vector<std::string> Ids() const override;
  const std::string& Folder() const override { return uploads_->folder(); }

  // Returns all sets, sorted by name, as Find returns them.
  std::vector<v1::Dataset> List() const;

 private:
  // Reserves an id during its creation or removal.
  class Claim;

  // The holds of one set.
  struct Holds {
    int active = 0;
    int64_t made = 0;  // The number of holds so far. Restarts if the set had no holds.
  };

  absl::Status CheckName(const std::string& id, const std::string& user) const;
  // Checks the source like a job's source. Errors are relative to the spec.
  absl::StatusOr<DatasetInfo> CheckData(const v1::DatasetSpec& spec, const std::string& upload) const;
  // Writes to the store, and blocks until the write is durable.
  absl::Status Write(Store::Body body);
  absl::Status Insert(const StoredDataset& dataset);
  // Calls `remove` unless the set is held or a job that has not ended uses the set.
  absl::Status DeleteUnused(const std::string& id, absl::FunctionRef<absl::Status()> remove);
  // Deletes a set that is not registered. Only a fetched public set can be deleted.
  absl::Status DeleteOther(const std::string& id, const v1::DeleteDatasetRequest& request);

  Store* const store_;
  Uploads* const uploads_;
  const DatasetCatalog* const catalog_;
  const Clock* const clock_;
  const std::string public_folder_;

  mutable Mutex mutex_;
  std::map<std::string, StoredDataset, std::less<>> datasets_ ABSL_GUARDED_BY(mutex_);
  // Ids that are being created or removed.
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
