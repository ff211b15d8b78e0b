#ifndef TANDEM_TESTS_INTEGRATION_WATCHER_H_
#define TANDEM_TESTS_INTEGRATION_WATCHER_H_

#include <grpcpp/client_context.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "tandem/v1/event.pb.h"
#include "tests/integration/daemon_process.h"

namespace tandem::testing {

// Watches one job over the plain API from its first event to its last on a thread of its own, and calls again
// with the last sequence number that it saw whenever the stream breaks. Keeps all that came, as it came.
// Thread-safe.
class Watcher {
 public:
  Watcher(const DaemonProcess& daemon, std::string job);
  // Breaks the stream off.
  ~Watcher();

  // Waits until a terminal event came and the stream ended, or an error came that is no broken connection.
  bool WaitForEnd(absl::Duration timeout) const;
  // Waits until so many events came in all, or the end did.
  bool WaitForEvents(int64_t count, absl::Duration timeout) const;

  int64_t count() const;
  bool ended() const;
  // Every event in the order in which it came.
  std::vector<v1::JobEvent> events() const;
  // The status that ended the last stream; OK after a terminal event.
  grpc::Status status() const;
  // Calls that were made.
  int calls() const;

 private:
  void Run();

  const std::string job_;
  const std::string authorization_;
  const std::shared_ptr<grpc::Channel> channel_;
  mutable Mutex mutex_;
  std::vector<v1::JobEvent> events_ ABSL_GUARDED_BY(mutex_);
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

// All events of a job by one WatchJob from sequence 0; expects that it ends with OK.
std::vector<v1::JobEvent> ReadEvents(const DaemonProcess& daemon, const std::string& job);

// Expects the log of a job that ended: numbered from 1 without gaps or repeats, of this job, the last event
// and no other one terminal.
void ExpectWholeLog(const std::vector<v1::JobEvent>& events, const std::string& job);

// Expects two logs to be equal, and names the first difference.
void ExpectSameLog(const std::vector<v1::JobEvent>& expected, const std::vector<v1::JobEvent>& actual);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_WATCHER_H_
