#include "server/fetch/fetch_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "proto/data_folder/data_folder.h"
#include "proto/data_folder/shards.h"
#include "server/fetch/http_origin.h"
#include "server/fetch/s3.h"

namespace tandem {
namespace {

// A larger listing is probably a whole store, named by mistake.
constexpr size_t kMostObjects = 2000000;
// Of all paths and entity tags of a listing. Other paths are bounded by ExpandShardPattern.
constexpr size_t kMostListedBytes = size_t{256} << 20;

// Each folder takes a block of the disk. The same for uploads.
constexpr int64_t kMostFolders = 31;

using Origins = FetchPlan::Origins;

Origins One(std::unique_ptr<Origin> origin) {
  Origins origins;
  origins.push_back(std::move(origin));
  return origins;
}

}  // namespace

std::string WhyNoPath(const std::string& path) {
  if (std::count(path.begin(), path.end(), '/') > kMostFolders) {
    return absl::StrCat("is more than ", kMostFolders, " folders deep");
  }
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty()) return "has an empty part";
    if (part == "." || part == "..") return "would lead out of its folder";
    if (part.size() > 255) return "has a part of more than 255 bytes";
  }
  return path.size() > 1024 ? "has more than 1024 bytes" : "";
}

absl::StatusOr<FetchPlan> FetchPlanner::Plan(const DataUrl& url, PathKind kind) const {
  if (kind == PathKind::kShards && IsShardPattern(WithoutQuery(url))) return PlanPattern(url);
  if (url.is_s3()) {
    // "key" means "key/" if a folder is wanted.
    DataUrl whole = url;
    if (kind == PathKind::kFolder && !url.key.empty() && !absl::EndsWith(url.key, "/")) whole.key += "/";
    TANDEM_RETURN_IF_ERROR(policy_->Check(whole));
    return PlanS3(url, kind);
  }
  if (kind == PathKind::kFolder) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", url.shown,
                     ", but must be a folder, and http cannot list folders; put the files into a bucket "
                     "(s3://...) or into a data folder of the daemon"));
  }
  return PlanFile(FileNameOf(url), {url.location});
}

absl::StatusOr<FetchPlan> FetchPlanner::PlanFile(const std::string& name,
                                                 const std::vector<std::string>& addresses) const {
  FetchPlan plan;
  plan.files.emplace_back().path = name;
  plan.origins_of = [policy = policy_, transport = transport_,
                     addresses](const PlannedFile&) -> absl::StatusOr<Origins> {
    Origins origins;
    for (const std::string& address : addresses) {
      TANDEM_ASSIGN_OR_RETURN(DataUrl url, ParseDataUrl(address));
      origins.push_back(std::make_unique<HttpOrigin>(std::move(url), policy, transport));
    }
    return origins;
  };
  return plan;
}

absl::StatusOr<FetchPlan> FetchPlanner::PlanPattern(const DataUrl& url) const {
  // The query may have secrets, so it is no part of the pattern and of its errors.
  const absl::string_view pattern = WithoutQuery(url);
  const absl::string_view query = absl::string_view(url.location).substr(pattern.size());
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> shards, ExpandShardPattern(pattern));
  const size_t cut = FolderOfPattern(pattern).size();
  std::shared_ptr<S3Bucket> bucket;
  FetchPlan plan{.folder = true, .files = {}, .origins_of = nullptr};
  for (const std::string& shard : shards) {
    TANDEM_ASSIGN_OR_RETURN(DataUrl one, ParseDataUrl(absl::StrCat(shard, query)));
    TANDEM_RETURN_IF_ERROR(policy_->Check(one));
    PlannedFile& file = plan.files.emplace_back();
    file.path = shard.substr(cut);
    std::string why = WhyNoPath(file.path);
    if (why.empty() && !IsShardName(file.path)) why = "does not end in .tar";
    if (why.empty() && IsSkippedPath(file.path)) why = "is hidden";
    if (!why.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", url.shown, ", which names the shard '",
                       absl::CHexEscape(file.path.substr(0, 200)), "', but this name ", why,
                       "; each shard needs a name of its own that ends in .tar and is not hidden"));
    }
    if (!one.is_s3()) continue;
    if (bucket == nullptr) {
      TANDEM_ASSIGN_OR_RETURN(bucket, OpenBucket(one));
    }
    if (one.host != bucket->name()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", url.shown, ", which names several buckets; put the braces after the bucket"));
    }
  }
  plan.origins_of = [policy = policy_, transport = transport_, bucket,
                     folder = std::string(pattern.substr(0, cut)),
                     query = std::string(query)](const PlannedFile& file) -> absl::StatusOr<Origins> {
    TANDEM_ASSIGN_OR_RETURN(DataUrl one, ParseDataUrl(absl::StrCat(folder, file.path, query)));
    if (one.is_s3()) return One(std::make_unique<S3Origin>(bucket, one.key));
    return One(std::make_unique<HttpOrigin>(std::move(one), policy, transport));
  };
  return Sorted(url, std::move(plan));
}

absl::StatusOr<std::shared_ptr<S3Bucket>> FetchPlanner::OpenBucket(const DataUrl& url) const {
  absl::StatusOr<S3Config> config = ReadS3Config(environment_);
  if (!config.ok()) {
    return absl::Status(config.status().code(),
                        absl::StrCat("is ", url.shown, ", but the daemon ", config.status().message()));
  }
  return std::make_shared<S3Bucket>(url.host, *std::move(config), transport_);
}

absl::StatusOr<FetchPlan> FetchPlanner::PlanS3(const DataUrl& url, PathKind kind) const {
  const bool names_folder = url.key.empty() || absl::EndsWith(url.key, "/");
  if (kind == PathKind::kFile && names_folder) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", url.shown, "; it must name a file: s3://bucket/key"));
  }
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<S3Bucket> bucket, OpenBucket(url));
  FetchPlan plan;
  size_t bytes = 0;
  const auto add = [&](std::string path, const S3Object& object) {
    PlannedFile& file = plan.files.emplace_back();
    file.path = std::move(path);
    file.size_bytes = object.size_bytes;
    file.etag = object.etag;
    bytes += file.path.size() + file.etag.size();
  };
  plan.origins_of = [bucket, key = url.key](const PlannedFile&) {
    return One(std::make_unique<S3Origin>(bucket, key));
  };
  if (kind == PathKind::kFile) {
    add(FileNameOf(url), {url.key, -1, ""});
    return plan;
  }

  // If a file or a folder is possible, list "key", because this finds both "key" and "key/...".
  const std::string folder = names_folder ? url.key : absl::StrCat(url.key, "/");
  const std::string prefix = kind == PathKind::kFolder ? folder : url.key;
  std::string token;
  Backoff backoff(retry_);
  do {
    const absl::StatusOr<S3Bucket::Page> page = bucket->List(prefix, token);
    if (!page.ok()) {
      if (!absl::IsUnavailable(page.status())) return page.status();
      const std::optional<absl::Duration> wait = backoff.After(page.status(), /*brought=*/false);
      if (!wait.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat("is ", url.shown,
                                                       ", but its objects could not be listed in ",
                                                       backoff.tries(), " tries: ", page.status().message()));
      }
      if (!sleep_(*wait)) return absl::CancelledError("the daemon is shutting down");
      continue;
    }
    backoff.Reset();
    for (const S3Object& object : page->objects) {
      if (object.key == url.key && !names_folder) {
        plan.files.clear();
        add(FileNameOf(url), object);
        return plan;
      }
      // S3 consoles create objects for folders.
      if (!absl::StartsWith(object.key, folder) || absl::EndsWith(object.key, "/")) continue;
      std::string path = object.key.substr(folder.size());
      if (const std::string why = WhyNoPath(path); !why.empty()) {
        return absl::InvalidArgumentError(absl::StrCat("is ", url.shown,
                                                       ", but an object there has a name that ", why, ": '",
                                                       absl::CHexEscape(path.substr(0, 200)), "'"));
      }
      if (IsSkippedPath(path) || (kind == PathKind::kShards && !IsShardName(path))) continue;
      add(std::move(path), object);
    }
    if (plan.files.size() > kMostObjects) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", url.shown, "; it must have at most ", kMostObjects, " objects"));
    }
    if (bytes > kMostListedBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is ", url.shown, ", whose objects have names and tags of more than ", kMostListedBytes >> 20,
          " MiB together; name a smaller folder, or pack the files into shards (webdataset)"));
    }
    if (token == page->next_token && !token.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", url.shown, ", but the server's list of objects never ends"));
    }
    token = page->next_token;
  } while (!token.empty() || backoff.tries() > 0);
  if (plan.files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", url.shown, ", but the bucket has ",
                     kind == PathKind::kShards ? "no shard, whose name ends in .tar, there" : "nothing there",
                     "; check the address"));
  }
  plan.folder = true;
  plan.origins_of = [bucket, folder](const PlannedFile& file) {
    return One(std::make_unique<S3Origin>(bucket, folder + file.path));
  };
  return Sorted(url, std::move(plan));
}

absl::StatusOr<FetchPlan> FetchPlanner::Sorted(const DataUrl& url, FetchPlan plan) {
  std::sort(plan.files.begin(), plan.files.end(),
            [](const PlannedFile& a, const PlannedFile& b) { return a.path < b.path; });
  // "a" and "a/b" can both be objects, but not both files.
  std::set<absl::string_view> paths;
  for (const PlannedFile& file : plan.files) paths.insert(file.path);
  for (const PlannedFile& file : plan.files) {
    for (size_t slash = file.path.find('/'); slash != std::string::npos;
         slash = file.path.find('/', slash + 1)) {
      const std::string parent = file.path.substr(0, slash);
      if (paths.count(parent) == 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("is ", url.shown, ", but it has the object '", parent, "' and objects below '", parent,
                       "'; a folder cannot have a file and a folder of the same name"));
    }
  }
  return plan;
}

}  // namespace tandem
