#include "server/admission/dataset_catalog.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/field_violations.h"
#include "engine/base/sha256.h"
#include "engine/base/spelling.h"
#include "engine/base/status_macros.h"
#include "engine/base/version.h"
#include "engine/data/source_paths.h"
#include "proto/data_folder/data_folder.h"
#include "proto/data_folder/shards.h"
#include "server/admission/data_facts.h"
#include "server/admission/folder_links.h"
#include "server/admission/known_datasets.h"
#include "server/store/records.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr char kFashionMnist[] = "fashion-mnist";

std::string Missing(const KnownDataset& known, const std::vector<std::string>& data_folders) {
  return absl::StrCat("not in the daemon's data folders (",
                      data_folders.empty() ? "there are none" : absl::StrJoin(data_folders, ", "), "); ",
                      known.remedy);
}

// The most bytes of a path, as Linux's PATH_MAX.
constexpr size_t kMostPathBytes = 4096;
// The most names in an error message.
constexpr size_t kMaxOffered = 20;

std::string Quote(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, 200)), text.size() > 200 ? "..." : "", "'");
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= 100 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

// Returns true if `path`, normal and absolute, is `folder` or below `folder`.
bool IsBelow(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  // A folder with a trailing slash has an empty last part.
  return in_folder == folder.end() || (in_folder->empty() && std::next(in_folder) == folder.end());
}

// Appends values that change whenever the file changes.
void AddFingerprint(const std::string& path, std::string& fingerprint) {
  struct stat info = {};
  stat(path.c_str(), &info);
  absl::StrAppend(&fingerprint, info.st_dev, ":", info.st_ino, ":", info.st_size, ":", info.st_mtim.tv_sec,
                  ".", info.st_mtim.tv_nsec, ":", info.st_ctim.tv_sec, ".", info.st_ctim.tv_nsec, ";");
}

// Returns a text that changes whenever a file in the folder changes, at any depth. The listing order does not
// matter.
std::string FolderFingerprint(const std::string& folder) {
  size_t files = 0, sum = 0;
  // The reader of the data set reports a folder that cannot be read.
  const absl::Status status = WalkDataFolder(folder, [&](const fs::path& path, bool /*is_folder*/) {
    std::string one = path.string();
    AddFingerprint(one, one);
    sum += std::hash<std::string>()(one);
    ++files;
  });
  return absl::StrCat(files, " files ", sum, ";", status.message(), ";");
}

// Returns a text that changes whenever one of the spec's files changes.
std::string Fingerprint(const v1::DatasetSpec& spec) {
  v1::DatasetSpec copy = spec;
  std::string fingerprint;
  for (const SourcePath& path : PathsOf(&copy)) {
    std::error_code ignored;
    if (path.path->empty()) continue;
    if (path.kind == PathKind::kShards && IsShardPattern(*path.path)) {
      const absl::StatusOr<std::vector<std::string>> shards = ListShards(*path.path);
      // The reader of the data set reports a wrong pattern.
      for (const std::string& shard : shards.ok() ? *shards : std::vector<std::string>()) {
        AddFingerprint(shard, fingerprint);
      }
      continue;
    }
    AddFingerprint(*path.path, fingerprint);
    if (fs::is_directory(*path.path, ignored)) fingerprint += FolderFingerprint(*path.path);
  }
  return fingerprint;
}

const char* Expected(PathKind kind) {
  switch (kind) {
    case PathKind::kFile:
      return "a plain file";
    case PathKind::kFolder:
      return "a folder";
    case PathKind::kShards:
      return "a plain file, a folder or a pattern of files";
    case PathKind::kFileOrFolder:
      break;
  }
  return "a plain file or a folder";
}

bool IsOfKind(const fs::path& path, PathKind kind) {
  std::error_code ignored;
  return (kind != PathKind::kFolder && fs::is_regular_file(path, ignored)) ||
         (kind != PathKind::kFile && fs::is_directory(path, ignored));
}

internal::v1::ModelNames MessageOf(const DataNames& names) {
  internal::v1::ModelNames message;
  message.mutable_features()->Add(names.features.begin(), names.features.end());
  message.mutable_targets()->Add(names.targets.begin(), names.targets.end());
  message.mutable_classes()->Add(names.classes.begin(), names.classes.end());
  message.set_matches_inputs(names.matches_inputs);
  message.set_matches_outputs(names.matches_outputs);
  message.set_takes_other_outputs(names.takes_other_outputs);
  if (names.preparation.has_value()) *message.mutable_preparation() = *names.preparation;
  return message;
}

// Returns true if the error belongs to the set, so that a new reading returns the same error. A reader that
// stopped or died says nothing about the set.
bool SaysOfSet(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status) ||
         absl::IsFailedPrecondition(status);
}

}  // namespace

DatasetCatalog::DatasetCatalog(std::vector<std::string> data_folders, DatasetReader* reader,
                               DurableFacts durable)
    : data_folders_(std::move(data_folders)), reader_(reader), known_(std::move(durable)) {}

std::map<std::string, std::string> DatasetCatalog::Find() const {
  std::map<std::string, std::string> found;
  for (const std::string& data_folder : data_folders_) {
    std::error_code error;
    for (fs::directory_iterator entry(data_folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (IsName(name) && !found.contains(name) && SourceIn(entry->path().string()).has_value()) {
        found[name] = entry->path().string();
      }
    }
  }
  return found;
}

absl::StatusOr<std::string> DatasetCatalog::ResolveFile(const std::string& path) const {
  if (IsUrl(path) && remote_ == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", ShownUrl(path),
                     ", but URLs are fetched only by a daemon; download the file, and give its path"));
  }
  return ResolvePath(path, PathKind::kFile, /*uploaded=*/false);
}

absl::StatusOr<std::string> DatasetCatalog::ResolvePath(const std::string& text, PathKind kind,
                                                        bool uploaded) const {
  if (IsUrl(text) && remote_ != nullptr) return remote_->LocalPath(text, kind);
  if (text.find('\0') != std::string::npos || text.size() > kMostPathBytes) {
    return absl::InvalidArgumentError(absl::StrCat("is not a path: it has a zero byte, or more than ",
                                                   kMostPathBytes, " bytes; give a file's path"));
  }
  if (kind == PathKind::kShards && IsShardPattern(text)) return ResolvePattern(text, uploaded);
  const auto outside = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", Quote(text), ", which is not inside a data folder of the daemon (",
        data_folders_.empty() ? "it has none" : absl::StrJoin(data_folders_, ", "),
        "); put the files there, or start the daemon with their folder as another --data-folder"));
  };
  const fs::path path(text);
  std::vector<std::string> folders = data_folders_;
  // Only a registered set leads to uploaded files, never a path in a job.
  if (uploaded && registered_ != nullptr && path.is_absolute()) folders.push_back(registered_->Folder());
  bool lexically_inside = false, is_denied = false;
  const auto denied = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", Quote(text), ", but the daemon's user (", geteuid(),
                     ") has no permission to read it; permit it on the path and on the folders above"));
  };
  for (const std::string& data_folder : folders) {
    std::error_code error;
    const fs::path folder = fs::canonical(data_folder, error);
    if (error) continue;
    const fs::path candidate = (path.is_absolute() ? path : folder / path).lexically_normal();
    // Reports only on paths inside a data folder, so that no client can test for files elsewhere.
    if (!IsBelow(candidate, folder) && !IsBelow(candidate, fs::path(data_folder).lexically_normal()))
      continue;
    lexically_inside = true;
    const fs::path resolved = fs::canonical(candidate, error);
    is_denied |= error == std::errc::permission_denied;
    if (error) continue;
    // A symbolic link may lead to another data folder.
    const auto is_allowed = [&folders](const fs::path& canonical) {
      return std::any_of(folders.begin(), folders.end(), [&canonical](const std::string& allowed) {
        std::error_code error;
        const fs::path allowed_folder = fs::canonical(allowed, error);
        return !error && IsBelow(canonical, allowed_folder);
      });
    };
    if (!is_allowed(resolved)) return outside();
    if (!IsOfKind(resolved, kind)) {
      return absl::InvalidArgumentError(absl::StrCat("is ", Quote(text), ", which is not ", Expected(kind)));
    }
    const bool is_folder = fs::is_directory(resolved, error);
    if (faccessat(AT_FDCWD, resolved.c_str(), is_folder ? R_OK | X_OK : R_OK, AT_EACCESS) != 0 &&
        errno == EACCES) {
      return denied();
    }
    if (is_folder) {
      const absl::StatusOr<std::optional<std::string>> out = FindLinkOut(resolved, is_allowed);
      if (!out.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "is ", Quote(text),
            ", but the folder cannot be checked for links that leave the data folders of the daemon: ",
            out.status().message()));
      }
      if (out->has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("is ", Quote(text), ", in which ", Quote(**out),
                         " is a link that leaves the data folders of the daemon (",
                         absl::StrJoin(data_folders_, ", "), "); put the files there"));
      }
    }
    return resolved.string();
  }
  if (!lexically_inside) return outside();
  if (is_denied) return denied();
  return absl::InvalidArgumentError(
      absl::StrCat("is ", Quote(text), ", but the daemon can read no such file",
                   path.is_absolute() ? "" : absl::StrCat(" in ", absl::StrJoin(data_folders_, " or "))));
}

absl::StatusOr<std::string> DatasetCatalog::ResolvePattern(const std::string& text, bool uploaded) const {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> shards, ExpandShardPattern(text));
  // The data folder that has the first shard must have all of them.
  std::string base;
  for (const std::string& data_folder : data_folders_) {
    std::error_code error;
    const fs::path folder = fs::canonical(data_folder, error);
    if (error || fs::path(text).is_absolute()) continue;
    std::string inside = absl::StrCat(folder.string(), "/");
    if (!ResolvePath(inside + shards.front(), PathKind::kFile, uploaded).ok()) continue;
    base = std::move(inside);
    break;
  }
  // The reader of the data set expands the whole path again.
  if (IsShardPattern(base)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", Quote(text), ", which is a pattern in the data folder ", base,
                     ", whose name has braces; rename the data folder, or give a folder of shards"));
  }
  for (const std::string& shard : shards) {
    TANDEM_RETURN_IF_ERROR(ResolvePath(base + shard, PathKind::kFile, uploaded).status());
  }
  std::error_code ignored;
  if (fs::exists(base + text, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", Quote(text), ", which is a pattern, but also the name of a file; rename the file"));
  }
  return base + text;
}

absl::StatusOr<v1::DatasetSpec> DatasetCatalog::Expand(const v1::DatasetSpec& spec) const {
  const bool has_source = spec.source_case() != v1::DatasetSpec::SOURCE_NOT_SET;
  if (spec.name().empty() && !has_source) {
    return FieldError("",
                      "needs a name, such as \"fashion-mnist\", or a source, such as idx or image_folder");
  }
  if (spec.name().empty()) return spec;
  if (has_source) {
    return FieldError("name", absl::StrCat("is ", Quote(spec.name()),
                                           ", but there is a source too; give only one of them"));
  }
  // ListDatasets returns the full name.
  const std::string name = DatasetId(spec.name());
  std::optional<v1::DatasetSpec> registered;
  if (registered_ != nullptr) registered = registered_->FindSpec(name);
  if (!registered.has_value()) return ExpandFolder(name, spec);
  v1::DatasetSpec expanded = *std::move(registered);
  // Each of these fields in the job replaces the registered set's field as a whole.
  if (spec.has_normalization()) expanded.clear_normalization();
  if (spec.has_validation_split()) expanded.clear_validation_split();
  if (spec.class_names_size() > 0) expanded.clear_class_names();
  expanded.MergeFrom(spec);
  return expanded;
}

absl::StatusOr<v1::DatasetSpec> DatasetCatalog::ExpandFolder(const std::string& name,
                                                             const v1::DatasetSpec& spec) const {
  v1::DatasetSpec expanded = spec;
  const std::map<std::string, std::string> known = Find();
  const auto found = known.find(name);
  if (found == known.end()) {
    if (const KnownDataset* missing = FindKnownDataset(name); missing != nullptr) {
      return FieldError("name", absl::StrCat("is '", name, "', which is ", Missing(*missing, data_folders_)));
    }
    std::set<std::string> names;
    for (const auto& [other, folder] : known) names.insert(other);
    if (registered_ != nullptr) {
      for (std::string& id : registered_->Ids()) names.insert(std::move(id));
    }
    // Fashion-MNIST is known even if the data folders do not have it.
    names.erase(kFashionMnist);
    std::vector<std::string> offered = {kFashionMnist};
    offered.insert(offered.end(), names.begin(), names.end());
    const std::string close = NearestName(name, offered);
    if (offered.size() > kMaxOffered) {
      offered.resize(kMaxOffered);
      offered.push_back("and others (tandem datasets lists them)");
    }
    return FieldError(
        "name",
        absl::StrCat(
            "is ", Quote(name), ", which is not a data set that the daemon knows; ",
            close.empty() ? "" : absl::StrCat("did you mean '", close, "'? "),
            "known: ", absl::StrJoin(offered, ", "),
            ". 'tandem datasets add' adds a data set from files. A subfolder of a data folder (",
            data_folders_.empty() ? "there are none; --data-folder gives one"
                                  : absl::StrJoin(data_folders_, ", "),
            ") with MNIST's four IDX files or CIFAR's binary files is a data set of the subfolder's name"));
  }
  const std::optional<v1::DatasetSpec> source = SourceIn(found->second);
  if (!source.has_value()) {
    return FieldError("name", absl::StrCat("is ", Quote(name), ", but its files were just removed"));
  }
  expanded.MergeFrom(*source);
  // The class names belong to the samples of the public set.
  const KnownDataset* public_set = FindKnownDataset(name);
  if (public_set != nullptr && spec.class_names().empty() && expanded.has_idx()) {
    expanded.mutable_idx()->set_classes(static_cast<int64_t>(public_set->class_names.size()));
    for (const std::string& class_name : public_set->class_names) expanded.add_class_names(class_name);
  }
  return expanded;
}

absl::StatusOr<v1::DatasetSpec> DatasetCatalog::Resolve(const v1::DatasetSpec& spec) const {
  TANDEM_ASSIGN_OR_RETURN(v1::DatasetSpec expanded, Expand(spec));
  return ResolvePaths(std::move(expanded), /*uploaded=*/!spec.name().empty());
}

absl::StatusOr<v1::DatasetSpec> DatasetCatalog::ResolvePaths(v1::DatasetSpec spec, bool uploaded) const {
  FieldViolations violations;
  for (const SourcePath& path : PathsOf(&spec)) {
    if (path.path->empty()) {
      if (path.required)
        violations.Add(path.field, absl::StrCat("is required: the path of ", Expected(path.kind)));
      continue;
    }
    absl::StatusOr<std::string> inside = ResolvePath(*path.path, path.kind, uploaded);
    if (inside.ok()) {
      *path.path = *std::move(inside);
    } else {
      violations.Add(spec.name().empty() ? path.field : "name", inside.status().message());
    }
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return spec;
}

absl::StatusOr<DatasetInfo> DatasetCatalog::Describe(const v1::DatasetSpec& resolved,
                                                     const DataNames* model) const {
  return Describe(resolved, model, {.owner = OwnerOf(resolved.name())});
}

std::string DatasetCatalog::OwnerOf(const std::string& id) const {
  if (registered_ == nullptr || id.empty()) return "";
  const std::optional<v1::Dataset> registered = registered_->Find(id);
  return registered.has_value() ? registered->user() : "";
}

absl::StatusOr<DatasetInfo> DatasetCatalog::Describe(const v1::DatasetSpec& resolved, const DataNames* model,
                                                     KnownFacts::Place place) const {
  // Synthetic data have no files.
  if (resolved.has_synthetic() || resolved.source_case() == v1::DatasetSpec::SOURCE_NOT_SET) {
    return DescribeDataset(resolved, model);
  }
  internal::v1::DataTask task;
  // Without a model, only the source matters: the files are read once, and the rest of the spec may vary.
  *task.mutable_dataset() = model == nullptr ? SourceAlone(resolved) : resolved;
  if (model != nullptr) *task.mutable_names() = MessageOf(*model);
  TANDEM_ASSIGN_OR_RETURN(const Question question, Ask(std::move(task), std::move(place)));
  const KnownFacts::Facts facts = Answer(question);
  absl::StatusOr<DatasetInfo> info =
      facts.ok() ? InfoOf(*facts, question.task.dataset()) : absl::StatusOr<DatasetInfo>(facts.status());
  return model == nullptr ? DescribeFromSource(resolved, info) : info;
}

absl::StatusOr<DatasetCatalog::Question> DatasetCatalog::Ask(internal::v1::DataTask task,
                                                             KnownFacts::Place place) {
  Question question{.task = std::move(task), .digest = "", .place = std::move(place)};
  // Another version of the reader may read the same files differently.
  TANDEM_ASSIGN_OR_RETURN(question.digest,
                          Sha256Of(absl::StrCat(kVersion, ";", question.task.SerializeAsString(),
                                                Fingerprint(question.task.dataset()))));
  return question;
}

KnownFacts::Facts DatasetCatalog::Answer(const Question& question) const {
  std::optional<KnownFacts::Facts> known = known_.Find(question.digest, question.place);
  if (known.has_value()) return *std::move(known);
  if (reader_ == nullptr)
    return absl::FailedPreconditionError("cannot read data sets: this server was started without a reader");
  std::shared_ptr<Reading> reading;
  bool is_first;
  {
    MutexLock lock(&readings_mutex_);
    std::shared_ptr<Reading>& place = readings_[question.digest];
    is_first = place == nullptr;
    if (is_first) place = std::make_shared<Reading>();
    reading = place;
  }
  if (!is_first) {
    const auto has_facts = [&reading]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading->mutex) {
      return reading->facts.has_value();
    };
    MutexLock lock(&reading->mutex);
    reading->mutex.Await(absl::Condition(&has_facts));
    return *reading->facts;
  }
  KnownFacts::Facts facts = reader_->Read(question.task);
  known_.Add(question.digest, facts, question.place);
  {
    MutexLock lock(&readings_mutex_);
    readings_.erase(question.digest);
  }
  MutexLock lock(&reading->mutex);
  reading->facts = facts;
  return facts;
}

DatasetCatalog::Described DatasetCatalog::DescribeNamed(const std::string& name, const std::string& folder,
                                                        ClassNames names) const {
  v1::Dataset dataset;
  dataset.set_name(DatasetName(name));
  dataset.set_location(folder);
  const KnownDataset* known = FindKnownDataset(name);
  dataset.set_description(known != nullptr ? known->description
                                           : absl::StrCat("Images in files in ", folder, "."));
  if (folder.empty()) {
    dataset.set_problem(Missing(*known, data_folders_));
    return {.dataset = std::move(dataset), .reading = absl::OkStatus()};
  }
  dataset.set_state(v1::DATASET_STATE_READY);
  dataset.set_origin(folder == absl::StrCat(public_folder_, "/", name) ? v1::DATASET_ORIGIN_FETCHED
                                                                       : v1::DATASET_ORIGIN_DATA_FOLDER);
  absl::Status reading = AddDescription(name, names, &dataset);
  return {.dataset = std::move(dataset), .reading = std::move(reading)};
}

DatasetCatalog::Described DatasetCatalog::DescribeRegistered(v1::Dataset dataset, ClassNames names) const {
  dataset.set_state(v1::DATASET_STATE_READY);
  dataset.set_origin(v1::DATASET_ORIGIN_REGISTERED);
  const std::string id = DatasetId(dataset.name());
  absl::Status reading = AddDescription(id, names, &dataset);
  return {.dataset = std::move(dataset), .reading = std::move(reading)};
}

absl::Status DatasetCatalog::AddDescription(const std::string& id, ClassNames names,
                                            v1::Dataset* dataset) const {
  v1::DatasetSpec spec;
  spec.set_name(id);
  const absl::StatusOr<v1::DatasetSpec> resolved = Resolve(spec);
  const absl::StatusOr<DatasetInfo> info =
      resolved.ok() ? Describe(*resolved, /*model=*/nullptr, {.owner = dataset->user(), .is_named = true})
                    : resolved.status();
  if (info.ok()) {
    SetDatasetInfo(*info, dataset);
    if (names == ClassNames::kShown) SetClassNames(*info, dataset);
    return absl::OkStatus();
  }
  const bool is_of_set = SaysOfSet(info.status());
  dataset->set_problem(
      absl::StrCat(is_of_set ? "" : "cannot be read at the moment: ", info.status().message()));
  return is_of_set ? absl::OkStatus() : info.status();
}

std::vector<v1::Dataset> DatasetCatalog::List(size_t begin, size_t most, size_t most_bytes) const {
  std::map<std::string, std::string> known = Find();
  known.emplace(kFashionMnist, "");
  if (registered_ != nullptr) {
    // List needs no folder of a registered set. A registered set hides a set of the same name in a data
    // folder.
    for (std::string& id : registered_->Ids()) known.emplace(std::move(id), "");
  }
  std::vector<v1::Dataset> list;
  if (begin >= known.size()) return list;
  // The size of all sets in `list` except the last.
  size_t bytes = 0;
  for (auto set = std::next(known.begin(), static_cast<std::ptrdiff_t>(begin));
       set != known.end() && list.size() < most && bytes < most_bytes; ++set) {
    if (!list.empty()) bytes += list.back().ByteSizeLong();
    std::optional<v1::Dataset> registered;
    if (registered_ != nullptr) registered = registered_->Find(set->first);
    if (registered.has_value()) {
      // Clear() would keep the field's memory.
      google::protobuf::RepeatedPtrField<std::string>().Swap(
          registered->mutable_spec()->mutable_class_names());
      list.push_back(DescribeRegistered(*std::move(registered), ClassNames::kLeftOut).dataset);
    } else if (!set->second.empty() || FindKnownDataset(set->first) != nullptr) {
      list.push_back(DescribeNamed(set->first, set->second, ClassNames::kLeftOut).dataset);
    } else {
      // The set was deleted after Ids() returned.
      list.emplace_back().set_name(DatasetName(set->first));
    }
  }
  return list;
}

absl::StatusOr<v1::Dataset> DatasetCatalog::DescribeById(const std::string& name) const {
  TANDEM_ASSIGN_OR_RETURN(Described described, FindDescribed(name));
  return std::move(described.dataset);
}

absl::StatusOr<DatasetCatalog::Described> DatasetCatalog::FindDescribed(const std::string& name) const {
  const std::string id = DatasetId(name);
  if (registered_ != nullptr) {
    std::optional<v1::Dataset> registered = registered_->Find(id);
    if (registered.has_value()) return DescribeRegistered(*std::move(registered), ClassNames::kShown);
  }
  const std::map<std::string, std::string> known = Find();
  const auto found = known.find(id);
  if (found != known.end()) return DescribeNamed(id, found->second, ClassNames::kShown);
  return absl::NotFoundError(
      absl::StrCat("name: there is no data set ", Quote(id), "; `tandem datasets` lists them"));
}

void DatasetCatalog::AddCounts(const KnownFacts::Facts& facts, v1::Dataset* dataset) {
  if (!facts.ok()) {
    dataset->set_problem(std::string(facts.status().message()));
    return;
  }
  *dataset->mutable_mean() = facts->dataset().mean();
  *dataset->mutable_standard_deviation() = facts->dataset().standard_deviation();
  *dataset->mutable_class_counts() = facts->dataset().class_counts();
  *dataset->mutable_columns() = facts->dataset().columns();
  if (facts->dataset().has_table_format()) {
    *dataset->mutable_table_format() = facts->dataset().table_format();
  }
}

absl::Status DatasetCatalog::CheckSamples(const v1::DatasetSpec& resolved) const {
  internal::v1::DataTask task;
  *task.mutable_dataset() = SourceAlone(resolved);
  task.set_counts(true);
  TANDEM_ASSIGN_OR_RETURN(const Question question, Ask(std::move(task), {}));
  return Answer(question).status();
}

absl::StatusOr<v1::Dataset> DatasetCatalog::Get(const std::string& name) const {
  TANDEM_ASSIGN_OR_RETURN(Described described, FindDescribed(name));
  TANDEM_RETURN_IF_ERROR(described.reading);
  if (!described.dataset.problem().empty()) return std::move(described.dataset);
  v1::DatasetSpec spec;
  spec.set_name(DatasetId(name));
  TANDEM_ASSIGN_OR_RETURN(spec, Resolve(spec));
  internal::v1::DataTask task;
  *task.mutable_dataset() = std::move(spec);
  task.mutable_dataset()->clear_name();
  // Normalization and augmentation do not change the counts.
  task.mutable_dataset()->clear_normalization();
  task.mutable_dataset()->clear_augmentation();
  task.set_counts(true);
  TANDEM_ASSIGN_OR_RETURN(const Question question,
                          Ask(std::move(task), {.owner = described.dataset.user(), .is_named = true}));
  const KnownFacts::Facts counted = Answer(question);
  if (!counted.ok() && !SaysOfSet(counted.status())) return counted.status();
  AddCounts(counted, &described.dataset);
  return std::move(described.dataset);
}

}  // namespace tandem
