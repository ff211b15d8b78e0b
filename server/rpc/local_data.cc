#include "server/rpc/local_data.h"

#include <optional>
#include <utility>

#include "server/admission/remote_data.h"

namespace tandem::rpc {
namespace {

using Then = absl::AnyInvocable<void(absl::StatusOr<v1::DatasetSpec>)>;

// Returns the expanded spec if it has URLs. Returns nullopt for an invalid spec, which other checks report.
std::optional<v1::DatasetSpec> WithUrls(const RpcContext& context, const v1::DatasetSpec& spec) {
  if (context.remote == nullptr) return std::nullopt;
  absl::StatusOr<v1::DatasetSpec> expanded = context.datasets->Expand(spec);
  if (!expanded.ok() || !NamesUrls(*expanded)) return std::nullopt;
  return *std::move(expanded);
}

// Returns the replacement of `spec`. A spec that names a set keeps the name, and the set is pinned behind it.
absl::StatusOr<v1::DatasetSpec> Local(const v1::DatasetSpec& spec, const std::string& field,
                                      absl::StatusOr<v1::DatasetSpec> pinned) {
  if (!pinned.ok()) return WithFieldPrefix(field, pinned.status());
  if (!spec.name().empty()) return spec;
  return pinned;
}

}  // namespace

void WithLocalData(const RpcContext& context, const std::string& user, const v1::DatasetSpec& spec,
                   const std::string& field, absl::Duration wait, Then then) {
  const std::optional<v1::DatasetSpec> urls = WithUrls(context, spec);
  if (!urls.has_value()) {
    then(spec);
    return;
  }
  context.remote->Ensure(
      *urls, user, wait,
      [&context, user, spec, field, then = std::move(then)](absl::StatusOr<v1::DatasetSpec> pinned) mutable {
        // Post it, because the caller may be a fetching thread.
        context.user_pool->Post(user, [local = Local(spec, field, std::move(pinned)),
                                       then = std::move(then)]() mutable { then(std::move(local)); });
      });
}

absl::StatusOr<v1::DatasetSpec> LocalDataNow(const RpcContext& context, const std::string& user,
                                             const v1::DatasetSpec& spec, const std::string& field) {
  const std::optional<v1::DatasetSpec> urls = WithUrls(context, spec);
  if (!urls.has_value()) return spec;
  absl::StatusOr<v1::DatasetSpec> local = absl::InternalError("cannot fetch: the fetcher gave no answer");
  context.remote->Ensure(*urls, user, absl::ZeroDuration(), [&](absl::StatusOr<v1::DatasetSpec> pinned) {
    local = Local(spec, field, std::move(pinned));
  });
  return local;
}

int64_t LocalDataBytes(const RpcContext& context, const v1::DatasetSpec& spec) {
  const std::optional<v1::DatasetSpec> urls = WithUrls(context, spec);
  if (!urls.has_value()) return 0;
  // The spec itself, its expansion with URLs, and the pinned URLs.
  return static_cast<int64_t>(spec.SpaceUsedLong() + 2 * urls->SpaceUsedLong() + PinBytes(*urls));
}

}  // namespace tandem::rpc
