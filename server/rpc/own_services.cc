#include "server/rpc/own_services.h"

#include <arpa/inet.h>
#include <grpcpp/server_context.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/mutex.h"
#include "server/rpc/connection_calls.h"

namespace tandem {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::ServerRpcInfo;

// Returns SourceOf a peer in gRPC's form, such as "ipv4:10.0.0.1:4000" or "ipv6:%5B::1%5D:4000".
std::string SourceOfPeer(absl::string_view peer) {
  std::string host = absl::StrReplaceAll(peer.substr(0, peer.rfind(':')), {{"%5B", ""}, {"%5D", ""}});
  const bool is_wide = absl::StartsWith(host, "ipv6:");
  char bytes[16] = {};
  if (inet_pton(is_wide ? AF_INET6 : AF_INET, host.c_str() + std::min<size_t>(host.size(), 5), bytes) != 1) {
    return host;
  }
  return SourceOf(std::string(bytes, is_wide ? 16 : 4));
}

// Counts calls by connection, address and in total. Thread-safe.
class Counts {
 public:
  // The keys to count, each with its limit.
  using Kinds = std::vector<std::pair<std::string, int>>;

  // If no key is at its limit, counts all of them. Otherwise returns false.
  bool Take(const Kinds& kinds) {
    MutexLock lock(&mutex_);
    for (const auto& [kind, most] : kinds) {
      const auto found = counts_.find(kind);
      if (found != counts_.end() && found->second >= most) return false;
    }
    for (const auto& [kind, most] : kinds) ++counts_[kind];
    return true;
  }
  void Give(const Kinds& kinds) {
    MutexLock lock(&mutex_);
    for (const auto& [kind, most] : kinds) {
      const auto found = counts_.find(kind);
      if (--found->second == 0) counts_.erase(found);
    }
  }

 private:
  Mutex mutex_;
  absl::flat_hash_map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);
};

// Lives as long as its call.
class Counter : public grpc::experimental::Interceptor {
 public:
  Counter(ServerRpcInfo* info, const OwnServiceLimits& limits, std::shared_ptr<Counts> counts)
      : info_(info), limits_(limits), counts_(std::move(counts)) {}
  ~Counter() override {
    if (!taken_.empty()) counts_->Give(taken_);
  }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    // This hook comes first and once.
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      const std::string peer = info_->server_context()->peer();
      Counts::Kinds kinds = {{absl::StrCat("connection ", peer), limits_.of_connection}};
      if (info_->type() != ServerRpcInfo::Type::UNARY) {
        kinds.emplace_back(absl::StrCat("address ", SourceOfPeer(peer)), limits_.of_address);
        kinds.emplace_back("all", limits_.of_all);
      }
      if (counts_->Take(kinds)) {
        taken_ = std::move(kinds);
      } else {
        info_->server_context()->TryCancel();
      }
    }
    methods->Proceed();
  }

 private:
  ServerRpcInfo* const info_;
  const OwnServiceLimits limits_;
  const std::shared_ptr<Counts> counts_;
  Counts::Kinds taken_;
};

class CounterFactory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CounterFactory(const OwnServiceLimits& limits) : limits_(limits) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    return absl::StartsWith(info->method(), "/grpc.") ? new Counter(info, limits_, counts_) : nullptr;
  }

 private:
  const OwnServiceLimits limits_;
  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> LimitOwnServices(
    const OwnServiceLimits& limits) {
  return std::make_unique<CounterFactory>(limits);
}

}  // namespace tandem
