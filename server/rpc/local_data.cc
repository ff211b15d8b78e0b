#include "server/rpc/local_data.h"

#include <utility>
#include <vector>

namespace tandem::rpc {
namespace {

// Returns the replacement of `spec`. A spec that names a set keeps the name, and the set is pinned behind it.
absl::StatusOr<v1::DatasetSpec> Local(const v1::DatasetSpec& spec, const std::string& field,
                                      absl::StatusOr<v1::DatasetSpec> pinned) {
  if (!pinned.ok()) return WithFieldPrefix(field, pinned.status());
  if (!spec.name().empty()) return spec;
  return pinned;
}

// Returns `spec` with its URLs pinned. `expanded` is its data set if that has URLs. The URL of the weights
// follows those of the data set.
v1::JobSpec LocalJob(v1::JobSpec spec, std::optional<v1::DatasetSpec> expanded,
                     const std::vector<std::string>& pinned) {
  if (IsUrl(spec.initial_weights().file())) spec.mutable_initial_weights()->set_file(pinned.back());
  if (expanded.has_value() && spec.dataset().name().empty()) {
    SetUrls(pinned, &*expanded);
    *spec.mutable_dataset() = *std::move(expanded);
  }
  return spec;
}

}  // namespace

std::optional<v1::DatasetSpec> LocalData::WithUrls(const v1::DatasetSpec& spec) const {
  if (remote_ == nullptr) return std::nullopt;
  absl::StatusOr<v1::DatasetSpec> expanded = datasets_->Expand(spec);
  if (!expanded.ok() || !NamesUrls(*expanded)) return std::nullopt;
  return *std::move(expanded);
}

void LocalData::Ensure(const std::string& user, const v1::DatasetSpec& spec, const std::string& field,
                       absl::AnyInvocable<void(absl::StatusOr<v1::DatasetSpec>)> then) const {
  const std::optional<v1::DatasetSpec> urls = WithUrls(spec);
  if (!urls.has_value()) {
    then(spec);
    return;
  }
  remote_->Ensure(*urls, user, kFetchWait,
                  [user_pool = user_pool_, user, spec, field,
                   then = std::move(then)](absl::StatusOr<v1::DatasetSpec> pinned) mutable {
                    // Post it, because the caller may be a fetching thread.
                    user_pool->Post(user, [local = Local(spec, field, std::move(pinned)),
                                           then = std::move(then)]() mutable { then(std::move(local)); });
                  });
}

bool LocalData::HasWeightsUrl(const v1::JobSpec& spec) const {
  return remote_ != nullptr && IsUrl(spec.initial_weights().file());
}

void LocalData::EnsureJob(const std::string& user, const v1::JobSpec& spec,
                          absl::AnyInvocable<void(absl::StatusOr<v1::JobSpec>)> then) const {
  std::optional<v1::DatasetSpec> expanded = WithUrls(spec.dataset());
  std::vector<FieldUrl> urls;
  if (expanded.has_value()) urls = UrlsOf(*expanded, "spec.dataset");
  if (HasWeightsUrl(spec)) {
    urls.push_back({"spec.initial_weights.file", spec.initial_weights().file(), PathKind::kFile});
  }
  if (urls.empty()) {
    then(spec);
    return;
  }
  remote_->EnsureUrls(std::move(urls), user, kFetchWait,
                      [user_pool = user_pool_, user, spec = v1::JobSpec(spec), expanded = std::move(expanded),
                       then = std::move(then)](absl::StatusOr<std::vector<std::string>> pinned) mutable {
                        absl::StatusOr<v1::JobSpec> local;
                        if (pinned.ok()) {
                          local = LocalJob(std::move(spec), std::move(expanded), *pinned);
                        } else {
                          local = pinned.status();
                        }
                        // Post it, because the caller may be a fetching thread.
                        user_pool->Post(user, [local = std::move(local), then = std::move(then)]() mutable {
                          then(std::move(local));
                        });
                      });
}

absl::StatusOr<v1::DatasetSpec> LocalData::EnsureNow(const std::string& user, const v1::DatasetSpec& spec,
                                                     const std::string& field) const {
  const std::optional<v1::DatasetSpec> urls = WithUrls(spec);
  if (!urls.has_value()) return spec;
  absl::StatusOr<v1::DatasetSpec> local = absl::InternalError("cannot fetch: the fetcher gave no answer");
  remote_->Ensure(*urls, user, absl::ZeroDuration(), [&](absl::StatusOr<v1::DatasetSpec> pinned) {
    local = Local(spec, field, std::move(pinned));
  });
  return local;
}

int64_t LocalData::BytesOf(const v1::DatasetSpec& spec) const {
  const std::optional<v1::DatasetSpec> urls = WithUrls(spec);
  if (!urls.has_value()) return 0;
  // The spec itself, its expansion with URLs, and the pinned URLs.
  return static_cast<int64_t>(spec.SpaceUsedLong() + 2 * urls->SpaceUsedLong() + PinBytes(*urls));
}

int64_t LocalData::BytesOfJob(const v1::JobSpec& spec) const {
  const int64_t bytes = BytesOf(spec.dataset());
  const bool has_url = HasWeightsUrl(spec);
  if (bytes == 0 && !has_url) return 0;
  // The job without its data set, which is counted above if it has URLs.
  const auto rest =
      static_cast<int64_t>(spec.SpaceUsedLong() - (bytes == 0 ? 0 : spec.dataset().SpaceUsedLong()));
  return bytes + rest + (has_url ? static_cast<int64_t>(2 * PinnedBytes(spec.initial_weights().file())) : 0);
}

}  // namespace tandem::rpc
