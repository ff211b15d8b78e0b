#include "client/lib/upload_plan.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "proto/data_folder/data_folder.h"
#include "proto/data_folder/shards.h"

namespace tandem::client {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPiece = 1 << 18;
constexpr size_t kMostProblems = 20;

// Collects problems, to report all of them together.
class Problems {
 public:
  void Add(absl::string_view problem) {
    if (++count_ <= kMostProblems) absl::StrAppend(&text_, text_.empty() ? "" : "\n", problem);
  }
  absl::Status ToStatus() const {
    if (count_ == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        count_ <= kMostProblems ? text_ : absl::StrCat(text_, "\nand ", count_ - kMostProblems, " more"));
  }

 private:
  std::string text_;
  size_t count_ = 0;
};

// Returns whether the daemon accepts the name as a part of a path, and protocol buffers as a string.
bool IsFitName(absl::string_view name) {
  return IsUtf8(name) && std::none_of(name.begin(), name.end(), [](unsigned char byte) {
           return byte < 0x20 || byte == 0x7f || byte == '\\';
         });
}

void AddFile(const fs::path& path, Problems* problems, std::map<std::string, LocalFile>* files) {
  std::error_code error;
  LocalFile file;
  file.local = path.string();
  file.size = static_cast<int64_t>(fs::file_size(path, error));
  if (error) {
    problems->Add(absl::StrCat(file.local, ": cannot be read: ", error.message()));
    return;
  }
  if (!IsFitName(file.local)) {
    problems->Add(
        absl::StrCat(absl::CHexEscape(file.local),
                     ": its name is not UTF-8, or has control characters or a backslash; rename it"));
    return;
  }
  files->emplace(file.local, std::move(file));
}

void AddFolder(const fs::path& folder, Problems* problems, std::map<std::string, LocalFile>* files) {
  const absl::Status status = WalkDataFolder(folder.string(), [&](const fs::path& path, bool is_folder) {
    if (!is_folder) AddFile(path, problems, files);
  });
  if (!status.ok()) problems->Add(status.message());
}

// Returns the deepest folder that contains both paths, or equals one of them.
fs::path CommonFolder(const fs::path& one, const fs::path& other) {
  fs::path common;
  for (auto a = one.begin(), b = other.begin(); a != one.end() && b != other.end() && *a == *b; ++a, ++b) {
    common /= *a;
  }
  return common;
}

}  // namespace

std::vector<NamedPath> SourcePaths(v1::DatasetSpec* spec) {
  std::vector<NamedPath> paths;
  const auto add = [&](std::string field, std::string* path) {
    if (!path->empty()) paths.push_back({std::move(field), path});
  };
  const auto add_two = [&](const std::string& source, auto* message) {
    add(source + ".train", message->mutable_train());
    add(source + ".validation", message->mutable_validation());
  };
  const auto add_array = [&](const std::string& field, bool given, auto mutable_array) {
    if (given) add(field + ".path", mutable_array()->mutable_path());
  };
  switch (spec->source_case()) {
    case v1::DatasetSpec::kIdx: {
      v1::IdxSource* idx = spec->mutable_idx();
      add("idx.train_images", idx->mutable_train_images());
      add("idx.train_labels", idx->mutable_train_labels());
      add("idx.validation_images", idx->mutable_validation_images());
      add("idx.validation_labels", idx->mutable_validation_labels());
      break;
    }
    case v1::DatasetSpec::kCifar: {
      v1::CifarSource* cifar = spec->mutable_cifar();
      add("cifar.path", cifar->mutable_path());
      for (int i = 0; i < cifar->train_size(); ++i) {
        add(absl::StrCat("cifar.train[", i, "]"), cifar->mutable_train(i));
      }
      for (int i = 0; i < cifar->validation_size(); ++i) {
        add(absl::StrCat("cifar.validation[", i, "]"), cifar->mutable_validation(i));
      }
      break;
    }
    case v1::DatasetSpec::kImageFolder:
      add_two("image_folder", spec->mutable_image_folder());
      break;
    case v1::DatasetSpec::kNpy: {
      v1::NpySource* npy = spec->mutable_npy();
      add_array("npy.train_inputs", npy->has_train_inputs(), [=] { return npy->mutable_train_inputs(); });
      add_array("npy.train_targets", npy->has_train_targets(), [=] { return npy->mutable_train_targets(); });
      add_array("npy.validation_inputs", npy->has_validation_inputs(),
                [=] { return npy->mutable_validation_inputs(); });
      add_array("npy.validation_targets", npy->has_validation_targets(),
                [=] { return npy->mutable_validation_targets(); });
      break;
    }
    case v1::DatasetSpec::kCsv:
      add_two("csv", spec->mutable_csv());
      break;
    case v1::DatasetSpec::kText:
      add_two("text", spec->mutable_text());
      break;
    case v1::DatasetSpec::kWebdataset:
      add_two("webdataset", spec->mutable_webdataset());
      break;
    case v1::DatasetSpec::kSynthetic:
    case v1::DatasetSpec::SOURCE_NOT_SET:
      break;
  }
  return paths;
}

bool IsUrl(absl::string_view path) { return absl::StrContains(path, "://"); }

absl::StatusOr<UploadPlan> PlanUpload(const std::string& folder, v1::DatasetSpec* spec) {
  struct Named {
    std::string* in_spec;
    fs::path path;    // Of a file, folder or pattern of shards.
    fs::path folder;  // Has the file or folder, or all shards.
  };
  std::vector<Named> named;
  std::map<std::string, LocalFile> files;
  Problems problems;
  for (const NamedPath& one : SourcePaths(spec)) {
    if (IsUrl(*one.path)) continue;
    std::error_code error;
    const fs::path given = fs::path(folder) / *one.path;
    fs::path path = fs::absolute(given, error).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();  // A slash at the end.
    if (fs::is_directory(path, error)) {
      AddFolder(path, &problems, &files);
    } else if (fs::is_regular_file(path, error)) {
      AddFile(path, &problems, &files);
    } else if (spec->has_webdataset() && IsShardPattern(path.string())) {
      const absl::StatusOr<std::vector<std::string>> shards = ExpandShardPattern(path.string());
      if (!shards.ok()) {
        problems.Add(absl::StrCat(one.field, ": ", shards.status().message()));
        continue;
      }
      // An absolute pattern may be the daemon's.
      const auto is_here = [&](const std::string& shard) { return fs::exists(shard, error); };
      if (fs::path(*one.path).is_absolute() && std::none_of(shards->begin(), shards->end(), is_here))
        continue;
      for (const std::string& shard : *shards) AddFile(shard, &problems, &files);
      named.push_back({one.path, path, fs::path(std::string(FolderOfPattern(path.string()))).parent_path()});
      continue;
    } else {
      // An absolute path may be the daemon's.
      if (!fs::path(*one.path).is_absolute() || fs::exists(path, error)) {
        problems.Add(absl::StrCat(one.field, ": there is no file or folder ", given.string()));
      }
      continue;
    }
    named.push_back({one.path, path, path.parent_path()});
  }
  if (absl::Status status = problems.ToStatus(); !status.ok()) return status;
  if (named.empty()) {
    return absl::InvalidArgumentError(
        "cannot upload the data set: it names no file of this machine; leave out --upload, or name a file");
  }
  if (files.empty())
    return absl::InvalidArgumentError("cannot upload the data set: its folders are empty; put files there");
  fs::path common = named.front().folder;
  for (const Named& one : named) common = CommonFolder(common, one.folder);
  const size_t cut = common.string() == "/" ? 1 : common.string().size() + 1;
  for (const Named& one : named) *one.in_spec = one.path.string().substr(cut);
  UploadPlan plan;
  for (auto& [local, file] : files) {
    file.path = local.substr(cut);
    plan.bytes += file.size;
    plan.files.push_back(std::move(file));
  }
  // All paths begin alike, so the order of their rests is the order of the paths.
  return plan;
}

absl::StatusOr<UploadPlan> PlanFileUpload(const std::string& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    return absl::InvalidArgumentError(absl::StrCat("there is no file ", absl::CHexEscape(file)));
  }
  Problems problems;
  std::map<std::string, LocalFile> files;
  AddFile(fs::absolute(file, error).lexically_normal(), &problems, &files);
  if (absl::Status status = problems.ToStatus(); !status.ok()) return status;
  UploadPlan plan;
  plan.files.push_back(std::move(files.begin()->second));
  plan.files[0].path = fs::path(plan.files[0].local).filename().string();
  plan.bytes = plan.files[0].size;
  return plan;
}

absl::Status ComputeDigests(const std::function<bool(int64_t bytes)>& on_bytes, UploadPlan* plan) {
  Sha256 manifest;
  std::vector<char> buffer(kPiece);
  int64_t bytes = 0;
  for (LocalFile& file : plan->files) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> open(std::fopen(file.local.c_str(), "rb"),
                                                               std::fclose);
    Sha256 sum;
    int64_t size = 0;
    if (open != nullptr) {
      while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), open.get())) {
        sum.Add({buffer.data(), count});
        size += static_cast<int64_t>(count);
        bytes += static_cast<int64_t>(count);
        if (!on_bytes(bytes)) return absl::CancelledError("stopped");
      }
    }
    if (open == nullptr || std::ferror(open.get()) != 0) {
      return absl::FailedPreconditionError(absl::StrCat("cannot read ", file.local));
    }
    if (size != file.size) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot upload ", file.local, ": its size has changed; upload it when no program writes it"));
    }
    if (!on_bytes(bytes)) return absl::CancelledError("stopped");
    TANDEM_ASSIGN_OR_RETURN(file.sha256, sum.FinishBytes());
    manifest.Add(absl::StrCat(absl::BytesToHexString(file.sha256), "  ", file.path, "\n"));
  }
  TANDEM_ASSIGN_OR_RETURN(plan->manifest_sha256, manifest.FinishBytes());
  return absl::OkStatus();
}

}  // namespace tandem::client
