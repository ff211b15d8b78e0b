#include "server/admission/dataset_catalog.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/base/memory_error.h"
#include "engine/base/status_macros.h"
#include "engine/data/source_paths.h"
#include "engine/data/statistics.h"
#include "server/admission/closest_name.h"
#include "server/admission/folder_links.h"
#include "server/admission/known_datasets.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr char kFashionMnist[] = "fashion-mnist";

std::string Missing(const KnownDataset& known, const std::vector<std::string>& data_folders) {
  return absl::StrCat("not in the daemon's data folders (",
                      data_folders.empty() ? "there are none" : absl::StrJoin(data_folders, ", "), "); ",
                      known.remedy);
}

// More would be somebody's mistake or malice; a description is a few numbers, and names of classes.
constexpr size_t kMaxDescribed = 256;
constexpr size_t kMaxDescribedBytes = 64 << 20;
// Names in an error message.
constexpr size_t kMaxOffered = 20;

std::string Quote(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, 200)), text.size() > 200 ? "..." : "", "'");
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= 100 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

// Whether `path`, normal and absolute, is `folder` or below it.
bool IsBelow(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  // A folder written with a slash at its end has an empty last part.
  return in_folder == folder.end() || (in_folder->empty() && std::next(in_folder) == folder.end());
}

// Adds what changes whenever a file does.
void AddFingerprint(const std::string& path, std::string& fingerprint) {
  struct stat info = {};
  stat(path.c_str(), &info);
  absl::StrAppend(&fingerprint, info.st_dev, ":", info.st_ino, ":", info.st_size, ":", info.st_mtim.tv_sec,
                  ".", info.st_mtim.tv_nsec, ":", info.st_ctim.tv_sec, ".", info.st_ctim.tv_nsec, ";");
}

// Of a folder, what changes whenever a file in it, at any depth, does; the order in which a folder lists its
// files does not count.
std::string FolderFingerprint(const std::string& folder) {
  size_t files = 0, sum = 0;
  std::error_code error;
  // What cannot be looked into is passed over, as by who reads the images; what follows it counts.
  for (fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end; entry.increment(error)) {
    std::string one = entry->path().string();
    AddFingerprint(one, one);
    sum += std::hash<std::string>()(one);
    ++files;
  }
  return absl::StrCat(files, " files ", sum, ";");
}

// Changes whenever one of the spec's files does.
std::string Fingerprint(const v1::DatasetSpec& spec) {
  v1::DatasetSpec copy = spec;
  std::string fingerprint;
  for (const SourcePath& path : PathsOf(&copy)) {
    std::error_code ignored;
    if (path.path->empty()) continue;
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

// Adds names to a key, so that different ones make different keys.
void AddNames(const DataNames& names, std::string* key) {
  absl::StrAppend(key, "|", names.matches_inputs, names.matches_outputs, names.takes_other_outputs);
  for (const std::vector<std::string>* list : {&names.features, &names.targets, &names.classes}) {
    absl::StrAppend(key, "|", list->size());
    for (const std::string& name : *list) absl::StrAppend(key, ":", name.size(), ":", name);
  }
}

}  // namespace

DatasetCatalog::DatasetCatalog(std::vector<std::string> data_folders)
    : data_folders_(std::move(data_folders)) {}

void DatasetCatalog::SetInfo(const DatasetInfo& info, v1::Dataset* dataset) {
  for (const int64_t extent : info.shape.extents()) dataset->add_shape(extent);
  dataset->set_classes(info.classes);
  dataset->set_train_samples(info.train_samples);
  dataset->set_validation_samples(info.validation_samples);
  size_t bytes = 0;
  for (const std::string& name : info.class_names) {
    bytes += name.size();
    if (bytes > kMostClassNamesBytes || static_cast<size_t>(dataset->class_names_size()) == kMostClassNames)
      break;
    dataset->add_class_names(name);
  }
  switch (info.sample_type) {
    case SampleType::kBytes:
      dataset->set_sample_kind(v1::SAMPLE_KIND_BYTES);
      break;
    case SampleType::kFloats:
      dataset->set_sample_kind(v1::SAMPLE_KIND_FLOATS);
      break;
    case SampleType::kTokens:
      dataset->set_sample_kind(v1::SAMPLE_KIND_TOKENS);
      break;
  }
  switch (info.target_type) {
    case TargetType::kClass:
    case TargetType::kClassProbabilities:
      dataset->set_target_kind(v1::TARGET_KIND_CLASS);
      break;
    case TargetType::kValues:
      dataset->set_target_kind(v1::TARGET_KIND_VALUES);
      break;
    case TargetType::kTokens:
      dataset->set_target_kind(v1::TARGET_KIND_TOKENS);
      break;
  }
  for (const int64_t extent : info.target_shape.extents()) dataset->add_target_shape(extent);
}

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
  if (IsUrl(path)) {
    return absl::InvalidArgumentError(
        "is a URL, and only data sets are fetched; put the file into a data folder of the daemon");
  }
  return ResolvePath(path, PathKind::kFile, /*uploaded=*/false);
}

absl::StatusOr<std::string> DatasetCatalog::ResolvePath(const std::string& text, PathKind kind,
                                                        bool uploaded) const {
  if (IsUrl(text) && remote_ != nullptr) return remote_->LocalPath(text, kind);
  const auto outside = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", Quote(text), ", which is not inside a data folder of the daemon (",
        data_folders_.empty() ? "it has none" : absl::StrJoin(data_folders_, ", "),
        "); put the files there, or start the daemon with their folder as another --data-folder"));
  };
  if (text.find('\0') != std::string::npos || text.size() > 4096) {
    return absl::InvalidArgumentError("is not a path");
  }
  const fs::path path(text);
  std::vector<std::string> folders = data_folders_;
  // By its path alone nothing that was uploaded can be had.
  if (uploaded && registered_ != nullptr && path.is_absolute()) folders.push_back(registered_->Folder());
  bool lexically_inside = false;
  for (const std::string& data_folder : folders) {
    std::error_code error;
    const fs::path folder = fs::canonical(data_folder, error);
    if (error) continue;
    const fs::path candidate = (path.is_absolute() ? path : folder / path).lexically_normal();
    // Only of what is inside do we say whether it is there.
    if (!IsBelow(candidate, folder) && !IsBelow(candidate, fs::path(data_folder).lexically_normal()))
      continue;
    lexically_inside = true;
    const fs::path resolved = fs::canonical(candidate, error);
    if (error) continue;
    // A symbolic link may lead into another data folder.
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
    if (fs::is_directory(resolved, error)) {
      const absl::StatusOr<std::optional<std::string>> out = FindLinkOut(resolved, is_allowed);
      if (!out.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("is ", Quote(text),
                         ", a folder that cannot be looked through for links to something outside the data "
                         "folders of the daemon: ",
                         out.status().message()));
      }
      if (out->has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("is ", Quote(text), ", in which ", Quote(**out),
                         " is a link to something outside the data folders of the daemon (",
                         absl::StrJoin(data_folders_, ", "), "); put the files there"));
      }
    }
    return resolved.string();
  }
  if (!lexically_inside) return outside();
  return absl::InvalidArgumentError(
      absl::StrCat("is ", Quote(text), ", and there is no such file that the daemon can read",
                   path.is_absolute() ? "" : absl::StrCat(" in ", absl::StrJoin(data_folders_, " or "))));
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
  // ListDatasets gives the full name.
  const std::string name(absl::StripPrefix(spec.name(), "datasets/"));
  std::optional<v1::DatasetSpec> registered;
  if (registered_ != nullptr) registered = registered_->FindSpec(name);
  if (!registered.has_value()) return ExpandFolder(name, spec);
  v1::DatasetSpec expanded = *std::move(registered);
  // What the job says counts more, each of these as a whole.
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
    // It is known even where it is not here.
    names.erase(kFashionMnist);
    std::vector<std::string> offered = {kFashionMnist};
    offered.insert(offered.end(), names.begin(), names.end());
    const std::string close = ClosestName(name, offered);
    if (offered.size() > kMaxOffered) {
      offered.resize(kMaxOffered);
      offered.push_back("and others (tandem datasets lists them)");
    }
    return FieldError(
        "name", absl::StrCat("is ", Quote(name), ", which is not a data set that the daemon knows; ",
                             close.empty() ? "" : absl::StrCat("did you mean '", close, "'? "),
                             "known: ", absl::StrJoin(offered, ", "),
                             ". 'tandem datasets add' makes one of files; and a subfolder of a data folder (",
                             data_folders_.empty() ? "there are none; --data-folder gives one"
                                                   : absl::StrJoin(data_folders_, ", "),
                             ") with MNIST's four IDX files or CIFAR's binary files is a data set of its own "
                             "name"));
  }
  const std::optional<v1::DatasetSpec> source = SourceIn(found->second);
  if (!source.has_value()) {
    return FieldError("name", absl::StrCat("is ", Quote(name), ", whose files have just gone"));
  }
  expanded.MergeFrom(*source);
  // Names of classes belong to the samples that everybody knows by this name.
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
  std::string key = resolved.SerializeAsString();
  if (model != nullptr) AddNames(*model, &key);
  const std::string files = Fingerprint(resolved);
  {
    MutexLock lock(&mutex_);
    const auto found = described_.find(key);
    if (found != described_.end() && found->second.files == files) return found->second.info;
  }
  absl::StatusOr<DatasetInfo> info = absl::UnknownError("");
  const absl::Status memory = CatchNoMemory([&] {
    info = DescribeDataset(resolved, model);
    return absl::OkStatus();
  });
  if (!memory.ok()) info = memory;
  // What is wrong with the files stays so; what the machine lacks it may have another time.
  if (!info.ok() && !absl::IsInvalidArgument(info.status())) return info;
  size_t bytes = key.size() + files.size() + info.status().message().size();
  if (info.ok()) {
    for (const std::vector<std::string>* names :
         {&info->class_names, &info->feature_names, &info->target_names, &info->notices}) {
      for (const std::string& name : *names) bytes += sizeof(name) + name.size();
    }
    bytes += info->feature_positions.size() * sizeof(int64_t) + info->one_class_mend.size();
  }
  MutexLock lock(&mutex_);
  if (described_.size() >= kMaxDescribed || described_bytes_ + bytes > kMaxDescribedBytes) {
    described_.clear();
    described_bytes_ = 0;
  }
  described_bytes_ += bytes;
  described_.insert_or_assign(key, Described{files, info});
  return info;
}

v1::Dataset DatasetCatalog::DescribeNamed(const std::string& name, const std::string& folder) const {
  v1::Dataset dataset;
  dataset.set_name(absl::StrCat("datasets/", name));
  dataset.set_location(folder);
  const KnownDataset* known = FindKnownDataset(name);
  dataset.set_description(known != nullptr ? known->description
                                           : absl::StrCat("Images in files in ", folder, "."));
  if (folder.empty()) {
    dataset.set_problem(Missing(*known, data_folders_));
    return dataset;
  }
  dataset.set_state(v1::DATASET_STATE_READY);
  dataset.set_origin(folder == absl::StrCat(public_folder_, "/", name) ? v1::DATASET_ORIGIN_FETCHED
                                                                       : v1::DATASET_ORIGIN_DATA_FOLDER);
  AddDescription(name, &dataset);
  return dataset;
}

v1::Dataset DatasetCatalog::DescribeRegistered(v1::Dataset dataset) const {
  dataset.set_state(v1::DATASET_STATE_READY);
  dataset.set_origin(v1::DATASET_ORIGIN_REGISTERED);
  AddDescription(std::string(absl::StripPrefix(dataset.name(), "datasets/")), &dataset);
  return dataset;
}

void DatasetCatalog::AddDescription(const std::string& id, v1::Dataset* dataset) const {
  v1::DatasetSpec spec;
  spec.set_name(id);
  const absl::StatusOr<v1::DatasetSpec> resolved = Resolve(spec);
  const absl::StatusOr<DatasetInfo> info = resolved.ok() ? Describe(*resolved) : resolved.status();
  if (info.ok()) {
    SetInfo(*info, dataset);
  } else {
    dataset->set_problem(std::string(info.status().message()));
  }
}

std::vector<v1::Dataset> DatasetCatalog::List(size_t begin, size_t most) const {
  std::map<std::string, std::string> known = Find();
  known.emplace(kFashionMnist, "");
  if (registered_ != nullptr) {
    // Their folders are of no concern: they count before those in data folders.
    for (std::string& id : registered_->Ids()) known.emplace(std::move(id), "");
  }
  std::vector<v1::Dataset> list;
  if (begin >= known.size()) return list;
  for (auto set = std::next(known.begin(), static_cast<std::ptrdiff_t>(begin));
       set != known.end() && list.size() < most; ++set) {
    std::optional<v1::Dataset> registered;
    if (registered_ != nullptr) registered = registered_->Find(set->first);
    if (registered.has_value()) {
      list.push_back(DescribeRegistered(*std::move(registered)));
    } else if (!set->second.empty() || FindKnownDataset(set->first) != nullptr) {
      list.push_back(DescribeNamed(set->first, set->second));
    } else {
      // It was registered, and is deleted by now.
      list.emplace_back().set_name(absl::StrCat("datasets/", set->first));
    }
    list.back().clear_class_names();
    if (list.back().has_spec()) list.back().mutable_spec()->clear_class_names();
  }
  return list;
}

absl::StatusOr<v1::Dataset> DatasetCatalog::DescribeById(const std::string& name) const {
  const std::string id(absl::StripPrefix(name, "datasets/"));
  if (registered_ != nullptr) {
    std::optional<v1::Dataset> registered = registered_->Find(id);
    if (registered.has_value()) return DescribeRegistered(*std::move(registered));
  }
  const std::map<std::string, std::string> known = Find();
  const auto found = known.find(id);
  if (found != known.end()) return DescribeNamed(id, found->second);
  return absl::NotFoundError(
      absl::StrCat("name: there is no data set ", Quote(id), "; those that there are: `tandem datasets`"));
}

absl::StatusOr<DatasetCatalog::Asked> DatasetCatalog::FindNumbers(const std::string& name) const {
  Asked asked;
  asked.id = std::string(absl::StripPrefix(name, "datasets/"));
  TANDEM_ASSIGN_OR_RETURN(asked.dataset, DescribeById(asked.id));
  if (!asked.dataset.problem().empty()) return asked;
  v1::DatasetSpec spec;
  spec.set_name(asked.id);
  TANDEM_ASSIGN_OR_RETURN(spec, Resolve(spec));
  // A set of this name may have been another one.
  asked.files = absl::StrCat(spec.SerializeAsString(), Fingerprint(spec));
  MutexLock lock(&mutex_);
  const auto counted = counted_.find(asked.id);
  if (counted != counted_.end() && counted->second.first == asked.files) {
    asked.dataset.MergeFrom(counted->second.second);
  } else {
    asked.spec = std::move(spec);
  }
  return asked;
}

absl::StatusOr<std::optional<v1::Dataset>> DatasetCatalog::GetRemembered(const std::string& name) const {
  TANDEM_ASSIGN_OR_RETURN(Asked asked, FindNumbers(name));
  if (asked.spec.has_value()) return std::nullopt;
  return std::move(asked.dataset);
}

absl::StatusOr<v1::Dataset> DatasetCatalog::Get(const std::string& name) const {
  TANDEM_ASSIGN_OR_RETURN(Asked asked, FindNumbers(name));
  if (!asked.spec.has_value()) return std::move(asked.dataset);
  v1::Dataset numbers;
  const absl::Status status = CatchNoMemory([&]() -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const OpenedDataset opened, OpenDataset(*asked.spec));
    const ChannelStatistics statistics = ComputeStatistics(*opened.train, opened.info);
    const double scale = opened.info.sample_type == SampleType::kBytes ? 1.0 / 255 : 1.0;
    for (const double mean : statistics.mean) numbers.add_mean(mean * scale);
    for (const double deviation : statistics.standard_deviation) {
      numbers.add_standard_deviation(deviation * scale);
    }
    for (const int64_t count : CountClasses(*opened.train, opened.info)) numbers.add_class_counts(count);
    return absl::OkStatus();
  });
  if (!status.ok()) {
    numbers.Clear();
    numbers.set_problem(std::string(status.message()));
  }
  asked.dataset.MergeFrom(numbers);
  // As in Describe.
  if (!status.ok() && !absl::IsInvalidArgument(status)) return std::move(asked.dataset);
  MutexLock lock(&mutex_);
  if (counted_.size() >= kMaxDescribed) counted_.clear();
  counted_.insert_or_assign(asked.id, std::pair(asked.files, numbers));
  return std::move(asked.dataset);
}

}  // namespace tandem
