#include "server/rpc/local_data.h"

#include <utility>

namespace tandem::rpc {
namespace {

// Returns the replacement of `spec`. A spec that names a set keeps the name, and the set is pinned behind it.
absl::StatusOr<v1::DatasetSpec> Local(const v1::DatasetSpec& spec, const std::string& field,
                                      absl::StatusOr<v1::DatasetSpec> pinned) {
  if (!pinned.ok()) return WithFieldPrefix(field, pinned.status());
  if (!spec.name().empty()) return spec;
  return pinned;
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

}  // namespace tandem::rpc
