#ifndef TANDEM_SERVER_CLUSTERS_SSH_FAKE_HOST_CLIENT_H_
#define TANDEM_SERVER_CLUSTERS_SSH_FAKE_HOST_CLIENT_H_

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "server/clusters/ssh/host_client.h"

namespace tandem {

// For tests: hosts without processes. A task runs until the test ends it. Thread-safe.
class FakeHostClient final : public HostClient {
 public:
  struct Signal {
    std::string host;
    std::string job_id;
    HostStop how;
    bool operator==(const Signal&) const = default;
  };

  // Adds a host, or changes its size.
  void SetSize(const std::string& host, int cores, int gpus) {
    MutexLock lock(&mutex_);
    hosts_[host].name = host;
    hosts_[host].cores = cores;
    hosts_[host].gpus = gpus;
  }
  // Hosts of the same machine have the same text.
  void SetMachine(const std::string& host, const std::string& machine) {
    MutexLock lock(&mutex_);
    hosts_[host].machine = machine;
  }
  // While set, no call of the host is answered. Its tasks run on.
  void SetAway(const std::string& host, bool away) {
    MutexLock lock(&mutex_);
    if (away) {
      away_.insert(host);
    } else {
      away_.erase(host);
    }
  }
  // The next Start on the host returns this error, and starts nothing.
  void RefuseStart(const std::string& host, absl::Status error) {
    MutexLock lock(&mutex_);
    refusals_[host] = std::move(error);
  }
  // Calls `call` at the beginning of each Start.
  void OnStart(std::function<void()> call) {
    MutexLock lock(&mutex_);
    on_start_ = std::move(call);
  }
  // Adds a task that this client did not start.
  void Add(const std::string& host, HostTask task) {
    MutexLock lock(&mutex_);
    hosts_[host].tasks.push_back(std::move(task));
  }
  // Ends the tasks of a job on a host.
  void End(const std::string& host, const std::string& job_id) {
    MutexLock lock(&mutex_);
    std::erase_if(hosts_[host].tasks, [&](const HostTask& task) { return task.job_id == job_id; });
  }

  std::vector<HostTask> tasks(const std::string& host) const {
    MutexLock lock(&mutex_);
    return hosts_.at(host).tasks;
  }
  std::vector<Signal> signals() const {
    MutexLock lock(&mutex_);
    return signals_;
  }
  int looks() const {
    MutexLock lock(&mutex_);
    return looks_;
  }

  absl::StatusOr<Host> Look(const std::string& host) override {
    MutexLock lock(&mutex_);
    ++looks_;
    if (away_.count(host) > 0) return Away(host);
    return hosts_.at(host);
  }
  absl::Status Start(const std::string& host, const HostStart& start) override {
    std::function<void()> call;
    {
      MutexLock lock(&mutex_);
      call = on_start_;
    }
    if (call) call();
    MutexLock lock(&mutex_);
    if (const auto refusal = refusals_.extract(host); !refusal.empty()) return refusal.mapped();
    if (away_.count(host) > 0) return Away(host);
    std::vector<HostTask>& tasks = hosts_[host].tasks;
    tasks.insert(tasks.end(), start.tasks.begin(), start.tasks.end());
    return absl::OkStatus();
  }
  absl::Status Stop(const std::string& host, const std::string& job_id, int, HostStop how) override {
    MutexLock lock(&mutex_);
    if (away_.count(host) > 0) return Away(host);
    signals_.push_back({host, job_id, how});
    if (how == HostStop::kKill) {
      std::erase_if(hosts_[host].tasks, [&](const HostTask& task) { return task.job_id == job_id; });
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Away(const std::string& host) {
    return absl::UnavailableError(absl::StrCat("cannot reach host ", host, ": it is away"));
  }

  mutable Mutex mutex_;
  std::map<std::string, Host> hosts_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> away_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Status> refusals_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_start_ ABSL_GUARDED_BY(mutex_);
  std::vector<Signal> signals_ ABSL_GUARDED_BY(mutex_);
  int looks_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SSH_FAKE_HOST_CLIENT_H_
