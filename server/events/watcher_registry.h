#ifndef TANDEM_SERVER_EVENTS_WATCHER_REGISTRY_H_
#define TANDEM_SERVER_EVENTS_WATCHER_REGISTRY_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "engine/base/mutex.h"
#include "server/events/subscription_core.h"

namespace tandem {

// The watchers of each log. Thread-safe. Never calls a watcher while holding the lock.
template <typename Item>
class WatcherRegistry {
 public:
  using Core = SubscriptionCore<Item>;

  // After Close, stops the watcher at once.
  void Add(const std::string& log, const std::shared_ptr<Core>& core) {
    absl::Status closed;
    {
      MutexLock lock(&mutex_);
      closed = closed_;
      if (closed.ok()) watchers_[log][core.get()] = core;
    }
    if (!closed.ok()) core->Stop(closed);
  }

  void Remove(const std::string& log, const Core* core) {
    MutexLock lock(&mutex_);
    const auto found = watchers_.find(log);
    if (found == watchers_.end()) return;
    found->second.erase(core);
    if (found->second.empty()) watchers_.erase(found);
  }

  std::vector<std::shared_ptr<Core>> Of(const std::string& log) const {
    std::vector<std::shared_ptr<Core>> cores;
    MutexLock lock(&mutex_);
    const auto found = watchers_.find(log);
    if (found == watchers_.end()) return cores;
    for (const auto& [key, watcher] : found->second) {
      if (std::shared_ptr<Core> core = watcher.lock(); core != nullptr) cores.push_back(std::move(core));
    }
    return cores;
  }

  void Close(const absl::Status& status) {
    std::vector<std::shared_ptr<Core>> cores;
    {
      MutexLock lock(&mutex_);
      if (!closed_.ok()) return;
      closed_ = status;
      for (const auto& [log, watchers] : watchers_) {
        for (const auto& [key, watcher] : watchers) {
          if (std::shared_ptr<Core> core = watcher.lock(); core != nullptr) cores.push_back(std::move(core));
        }
      }
    }
    for (const std::shared_ptr<Core>& core : cores) core->Stop(status);
  }

 private:
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, absl::flat_hash_map<const Core*, std::weak_ptr<Core>>> watchers_
      ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_EVENTS_WATCHER_REGISTRY_H_
