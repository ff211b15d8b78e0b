#include "server/rpc/caller_of.h"

#include <vector>

namespace tandem {

absl::StatusOr<Caller> CallerOf(const Authenticator& authenticator,
                                const grpc::CallbackServerContext& context) {
  std::vector<Authenticator::Metadata> metadata;
  for (const auto& [name, value] : context.client_metadata()) {
    metadata.emplace_back(absl::string_view(name.data(), name.size()),
                          absl::string_view(value.data(), value.size()));
  }
  return authenticator.Identify(metadata);
}

}  // namespace tandem
