#include "server/datasets/dataset_registry.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/data/source_paths.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/time_util.h"
#include "proto/data_folder/shards.h"
#include "server/admission/data_facts.h"
#include "server/admission/remote_data.h"
#include "server/datasets/dataset_request.h"
#include "server/datasets/upload_path.h"
#include "server/store/pending_result.h"
#include "server/store/request_owner.h"
#include "server/store/scheduling_records.h"
#include "server/store/timestamps.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/dataset_service.pb.h"

namespace tandem {
namespace {

using google::protobuf::util::TimeUtil;

// The most sets of all users, and of each user except the administrator. Lists hold a description of each
// set. The limit for all users does not apply to the administrator.
constexpr int64_t kMostDatasets = 1000;
constexpr int64_t kMostDatasetsEach = 200;
// The most jobs that an error names.
constexpr size_t kNamedJobs = 10;

std::string NewEtag() {
  absl::BitGen random;
  return absl::StrFormat("%016x", absl::Uniform<uint64_t>(random));
}

absl::Status NoSuchDataset(const std::string& id) {
  return WithReason(absl::NotFoundError(absl::StrCat("name: there is no data set '", absl::CHexEscape(id),
                                                     "'; `tandem datasets` lists them")),
                    "DATASET_NOT_FOUND");
}

absl::Status Exists(const std::string& id, absl::string_view how) {
  return WithReason(absl::AlreadyExistsError(absl::StrCat("dataset_id: the data set '", id, "' exists ", how,
                                                          "; use another name, or remove it first")),
                    "DATASET_EXISTS");
}

absl::Status BeingChanged(const std::string& id) {
  return absl::AbortedError(absl::StrCat("cannot change the data set '", id,
                                         "': another call is adding or removing it; try again"));
}

std::string UploadId(const std::string& name) { return std::string(absl::StripPrefix(name, "uploads/")); }

// Returns the SHA-256 of the fields that identify a repeated request. Empty if the digest cannot be computed.
std::string DigestOf(const v1::CreateDatasetRequest& request) {
  v1::CreateDatasetRequest counts;
  counts.set_dataset_id(request.dataset_id());
  counts.mutable_dataset()->set_description(request.dataset().description());
  *counts.mutable_dataset()->mutable_spec() = request.dataset().spec();
  counts.set_upload(request.upload());
  counts.DiscardUnknownFields();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    counts.SerializeToCodedStream(&coded);
  }
  return Sha256Of(bytes).value_or("");
}

// Returns an error if a path of a source may not be used. See AtUploadedFiles.
absl::Status CheckSourcePath(absl::string_view path, const std::string& uploads_folder) {
  if (path.empty() || path.front() != '/') {
    return CheckUploadPath(absl::StripSuffix(absl::StripPrefix(path, "./"), "/"));
  }
  // An absolute path must not lead to uploaded files of any set.
  const std::string normal = std::filesystem::path(std::string(path)).lexically_normal().string();
  if (!absl::StartsWith(normal, uploads_folder + "/")) return absl::OkStatus();
  return absl::InvalidArgumentError("leads to uploaded files; those of the upload have relative paths");
}

// Returns `spec` with each relative path of its source made absolute below `files_folder`, the folder of its
// upload. INVALID_ARGUMENT if no upload can have the path, or if an absolute path is below `uploads_folder`,
// the folder of all uploads. Checks each path of a pattern of shards in the same way.
absl::StatusOr<v1::DatasetSpec> AtUploadedFiles(v1::DatasetSpec spec, const std::string& uploads_folder,
                                                const std::string& files_folder) {
  FieldViolations violations;
  for (const SourcePath& path : PathsOf(&spec)) {
    if (path.path->empty() || IsUrl(*path.path)) continue;
    absl::Status fault = CheckSourcePath(*path.path, uploads_folder);
    if (fault.ok() && path.kind == PathKind::kShards && IsShardPattern(*path.path)) {
      const absl::StatusOr<std::vector<std::string>> shards = ExpandShardPattern(*path.path);
      fault = shards.status();
      for (size_t i = 0; fault.ok() && i < shards->size(); ++i) {
        fault = CheckSourcePath((*shards)[i], uploads_folder);
      }
    }
    if (!fault.ok()) violations.Add(path.field, fault.message());
    if (path.path->front() == '/') continue;
    const absl::string_view relative = absl::StripSuffix(absl::StripPrefix(*path.path, "./"), "/");
    *path.path = absl::StrCat(files_folder, "/", relative);
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return spec;
}

}  // namespace

// Reserves an id until destroyed.
class DatasetRegistry::Claim {
 public:
  // Returns null if the id is already reserved.
  static std::unique_ptr<Claim> Take(DatasetRegistry* registry, const std::string& id) {
    MutexLock lock(&registry->mutex_);
    if (!registry->changing_.insert(id).second) return nullptr;
    return std::unique_ptr<Claim>(new Claim(registry, id));
  }
  ~Claim() {
    MutexLock lock(&registry_->mutex_);
    registry_->changing_.erase(id_);
    const auto holds = registry_->holds_.find(id_);
    if (holds != registry_->holds_.end() && holds->second.active == 0) registry_->holds_.erase(holds);
  }

 private:
  Claim(DatasetRegistry* registry, std::string id) : registry_(registry), id_(std::move(id)) {}
  DatasetRegistry* const registry_;
  const std::string id_;
};

DatasetRegistry::DatasetRegistry(Store* store, Uploads* uploads, const DatasetCatalog* catalog,
                                 const Clock* clock, std::string public_folder)
    : store_(store),
      uploads_(uploads),
      catalog_(catalog),
      clock_(clock),
      public_folder_(std::move(public_folder)) {}

void DatasetRegistry::Restore(std::vector<StoredDataset> datasets) {
  MutexLock lock(&mutex_);
  for (StoredDataset& dataset : datasets) {
    std::string id = DatasetId(dataset.dataset.name());
    datasets_.insert_or_assign(std::move(id), std::move(dataset));
  }
}

absl::StatusOr<std::optional<v1::Dataset>> DatasetRegistry::FindRepeated(
    const v1::CreateDatasetRequest& request, const std::string& user) const {
  if (request.request_id().empty() || request.validate_only()) return std::optional<v1::Dataset>();
  StoredDataset known;
  {
    MutexLock lock(&mutex_);
    const auto found = std::find_if(datasets_.begin(), datasets_.end(), [&](const auto& entry) {
      return entry.second.request_id == request.request_id();
    });
    if (found == datasets_.end()) return std::optional<v1::Dataset>();
    known = found->second;
  }
  TANDEM_RETURN_IF_ERROR(CheckRequestOwner(request.request_id(), known.dataset.user(), user));
  if (known.request != DigestOf(request)) {
    return absl::AlreadyExistsError(absl::StrCat("request_id: '", request.request_id(),
                                                 "' was already used for another request, of '",
                                                 known.dataset.name(), "'; use a new one"));
  }
  TANDEM_ASSIGN_OR_RETURN(v1::Dataset dataset, catalog_->DescribeById(known.dataset.name()));
  return std::optional<v1::Dataset>(std::move(dataset));
}

absl::Status DatasetRegistry::CheckName(const std::string& id, const std::string& user) const {
  {
    MutexLock lock(&mutex_);
    const auto found = datasets_.find(id);
    if (found != datasets_.end()) {
      return Exists(id, absl::StrCat("already, registered on ",
                                     TimeUtil::ToString(found->second.dataset.create_time())));
    }
    const int64_t own = std::count_if(datasets_.begin(), datasets_.end(), [&user](const auto& entry) {
      return entry.second.dataset.user() == user;
    });
    const bool is_admin = user == kAdminUser;
    if (own >= (is_admin ? kMostDatasets : kMostDatasetsEach)) {
      return WithReason(
          absl::ResourceExhaustedError(absl::StrCat("cannot add a data set for \"", user, "\": there are ",
                                                    own, ", the most for one user; remove some")),
          "TOO_MANY_DATASETS");
    }
    if (!is_admin && static_cast<int64_t>(datasets_.size()) >= kMostDatasets) {
      return WithReason(
          absl::ResourceExhaustedError(absl::StrCat("cannot add a data set: there are ", datasets_.size(),
                                                    ", the most that the daemon keeps; remove some")),
          "TOO_MANY_DATASETS");
    }
  }
  const absl::StatusOr<v1::Dataset> other = catalog_->DescribeById(id);
  if (other.ok()) return Exists(id, absl::StrCat("in the folder ", other->location()));
  return absl::OkStatus();
}

absl::StatusOr<v1::Dataset> DatasetRegistry::Create(const v1::CreateDatasetRequest& request,
                                                    const v1::DatasetSpec& spec, const std::string& user) {
  TANDEM_RETURN_IF_ERROR(CheckDatasetRequest(request));
  const std::string& id = request.dataset_id();
  const std::unique_ptr<Claim> claim = Claim::Take(this, id);
  if (claim == nullptr) return BeingChanged(id);
  TANDEM_RETURN_IF_ERROR(CheckName(id, user));

  StoredDataset stored;
  stored.dataset.set_name(DatasetName(id));
  stored.dataset.set_user(user);
  stored.dataset.set_description(request.dataset().description());
  *stored.dataset.mutable_spec() = spec;
  *stored.dataset.mutable_create_time() = TimestampOf(clock_->Now());
  stored.dataset.set_etag(NewEtag());
  stored.request_id = request.request_id();
  if (!stored.request_id.empty()) stored.request = DigestOf(request);

  // Gives the upload back unless the set gets created.
  const auto give_back = [this](std::string* upload) { uploads_->GiveBack(*upload); };
  std::unique_ptr<std::string, decltype(give_back)> claimed(nullptr, give_back);
  if (!request.upload().empty()) {
    stored.upload = UploadId(request.upload());
    TANDEM_ASSIGN_OR_RETURN(const v1::Upload upload, uploads_->Claim(stored.upload));
    claimed.reset(&stored.upload);
    stored.dataset.set_size_bytes(upload.bytes());
    stored.dataset.set_manifest_sha256(upload.manifest_sha256());
  }
  const absl::StatusOr<DatasetInfo> info = CheckData(spec, stored.upload);
  if (!info.ok()) {
    // An error that is not the request's fault keeps its code.
    if (!absl::IsInvalidArgument(info.status())) return info.status();
    FieldViolations violations;
    violations.AddAll("dataset.spec", info.status());
    return WithReason(violations.ToStatus(), "INVALID_DATASET");
  }
  if (request.validate_only()) {
    v1::Dataset checked = stored.dataset;
    SetDatasetInfo(*info, &checked);
    SetClassNames(*info, &checked);
    checked.clear_etag();
    return checked;
  }
  TANDEM_RETURN_IF_ERROR(Insert(stored));
  if (claimed.release() != nullptr) uploads_->Keep(stored.upload, user);
  {
    MutexLock lock(&mutex_);
    datasets_.insert_or_assign(id, std::move(stored));
  }
  return catalog_->DescribeById(id);
}

absl::StatusOr<DatasetInfo> DatasetRegistry::CheckData(const v1::DatasetSpec& spec,
                                                       const std::string& upload) const {
  v1::DatasetSpec located = spec;
  if (!upload.empty()) {
    TANDEM_ASSIGN_OR_RETURN(located, AtUploadedFiles(spec, Folder(), uploads_->FilesFolder(upload)));
  }
  TANDEM_ASSIGN_OR_RETURN(located, catalog_->ResolvePaths(std::move(located), !upload.empty()));
  absl::StatusOr<DatasetInfo> info = catalog_->Describe(located);
  // Describing reads all numbers and labels of the other formats.
  if (info.ok() && (located.has_npy() || located.has_cifar())) {
    TANDEM_RETURN_IF_ERROR(catalog_->CheckSamples(located));
  }
  return info;
}

absl::Status DatasetRegistry::Write(Store::Body body) {
  const PendingValue<absl::Status> written;
  store_->Write(std::move(body), written.Callback());
  return written.Wait();
}

absl::Status DatasetRegistry::Insert(const StoredDataset& dataset) {
  return Write([&dataset](Transaction& transaction) { return transaction.InsertDataset(dataset); });
}

absl::Status DatasetRegistry::Delete(const v1::DeleteDatasetRequest& request) {
  const std::string id = DatasetId(request.name());
  if (id.empty()) return FieldError("name", "is required: \"datasets/<id>\" or the id alone");
  const std::unique_ptr<Claim> claim = Claim::Take(this, id);
  if (claim == nullptr) return BeingChanged(id);
  const std::optional<v1::Dataset> registered = Find(id);
  if (!registered.has_value()) return DeleteOther(id, request);
  if (!request.etag().empty() && request.etag() != registered->etag()) {
    return WithReason(
        absl::AbortedError(absl::StrCat("etag: is '", absl::CHexEscape(request.etag().substr(0, 100)),
                                        "', but that of '", registered->name(), "' is '", registered->etag(),
                                        "': the data set changed meanwhile; read it again")),
        "ETAG_MISMATCH");
  }
  return DeleteUnused(id, [&]() -> absl::Status {
    // From here on, no job can name the set.
    StoredDataset removed;
    {
      MutexLock lock(&mutex_);
      removed = std::move(datasets_.extract(id).mapped());
    }
    const absl::Status deleted =
        Write([&id](Transaction& transaction) { return transaction.DeleteDataset(id); });
    if (!deleted.ok()) {
      MutexLock lock(&mutex_);
      datasets_.insert_or_assign(id, std::move(removed));
      return deleted;
    }
    if (!removed.upload.empty()) uploads_->Remove(removed.upload);
    return absl::OkStatus();
  });
}

absl::Status DatasetRegistry::DeleteOther(const std::string& id, const v1::DeleteDatasetRequest& request) {
  const absl::StatusOr<v1::Dataset> other = catalog_->DescribeById(id);
  if (absl::IsNotFound(other.status())) {
    return request.allow_missing() ? absl::OkStatus() : NoSuchDataset(id);
  }
  TANDEM_RETURN_IF_ERROR(other.status());
  const std::filesystem::path location = other->location();
  if (location.parent_path() != std::filesystem::path(public_folder_)) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "name: cannot remove '", id, "': it is in the data folder ", location.parent_path().string(),
            ", and the daemon does not own that folder; remove the files there")),
        "DATASET_NOT_REGISTERED");
  }
  // For example, the caller meant a registered set of this name.
  if (!request.etag().empty()) {
    return WithReason(
        absl::AbortedError(absl::StrCat("etag: is '", absl::CHexEscape(request.etag().substr(0, 100)),
                                        "', but '", DatasetName(id),
                                        "' is a fetched set, which has none: the data set changed meanwhile; "
                                        "read it again, or leave out the etag")),
        "ETAG_MISMATCH");
  }
  return DeleteUnused(id, [&]() -> absl::Status {
    std::error_code error;
    std::filesystem::remove_all(location, error);
    if (!error) return absl::OkStatus();
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot remove ", location.string()));
  });
}

absl::Status DatasetRegistry::DeleteUnused(const std::string& id, absl::FunctionRef<absl::Status()> remove) {
  const auto being_used = [&] {
    return WithReason(absl::AbortedError(absl::StrCat("cannot remove the data set '", id,
                                                      "': a job that uses it is being submitted; try again")),
                      "DATASET_IN_USE");
  };
  int64_t holds = 0;
  {
    MutexLock lock(&mutex_);
    const Holds& now = holds_[id];
    if (now.active > 0) return being_used();
    holds = now.made;
  }
  std::vector<std::string> users;
  size_t others = 0;
  TANDEM_RETURN_IF_ERROR(store_->VisitNonTerminalJobs([&](const StoredJob& job) {
    if (DatasetId(job.job.spec().dataset().name()) != id) return;
    if (users.size() < kNamedJobs) {
      users.push_back(JobId(job.job.name()));
    } else {
      ++others;
    }
  }));
  if (!users.empty()) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "name: cannot remove '", id, "': jobs that have not ended use it: ", absl::StrJoin(users, ", "),
            others > 0 ? absl::StrCat(" and ", others, " more") : "",
            "; cancel them, or wait until they end")),
        "DATASET_IN_USE");
  }
  {
    // A job may have been accepted since.
    MutexLock lock(&mutex_);
    if (holds_[id].made != holds) return being_used();
  }
  return remove();
}

DatasetRegistry::Hold DatasetRegistry::HoldFor(const std::string& name_or_id) {
  Hold hold;
  hold.id_ = DatasetId(name_or_id);
  if (hold.id_.empty()) return hold;
  hold.registry_ = this;
  MutexLock lock(&mutex_);
  Holds& holds = holds_[hold.id_];
  ++holds.active;
  ++holds.made;
  return hold;
}

DatasetRegistry::Hold::~Hold() {
  if (registry_ == nullptr) return;
  MutexLock lock(&registry_->mutex_);
  auto holds = registry_->holds_.find(id_);
  if (--holds->second.active > 0 || registry_->changing_.contains(id_)) return;
  registry_->holds_.erase(holds);
}

std::optional<v1::Dataset> DatasetRegistry::Find(absl::string_view id) const {
  MutexLock lock(&mutex_);
  const auto found = datasets_.find(id);
  if (found == datasets_.end()) return std::nullopt;
  v1::Dataset dataset = found->second.dataset;
  if (!found->second.upload.empty()) dataset.set_location(uploads_->FilesFolder(found->second.upload));
  return dataset;
}

std::optional<v1::DatasetSpec> DatasetRegistry::FindSpec(absl::string_view id) const {
  MutexLock lock(&mutex_);
  const auto found = datasets_.find(id);
  if (found == datasets_.end()) return std::nullopt;
  const StoredDataset& dataset = found->second;
  if (dataset.upload.empty()) return dataset.dataset.spec();
  absl::StatusOr<v1::DatasetSpec> located =
      AtUploadedFiles(dataset.dataset.spec(), Folder(), uploads_->FilesFolder(dataset.upload));
  // Create already checked the paths.
  return located.ok() ? *std::move(located) : dataset.dataset.spec();
}

std::vector<std::string> DatasetRegistry::Ids() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, dataset] : datasets_) ids.push_back(id);
  return ids;
}

std::vector<v1::Dataset> DatasetRegistry::List() const {
  std::vector<v1::Dataset> datasets;
  for (const std::string& id : Ids()) {
    if (std::optional<v1::Dataset> dataset = Find(id); dataset.has_value()) {
      datasets.push_back(*std::move(dataset));
    }
  }
  return datasets;
}

}  // namespace tandem
