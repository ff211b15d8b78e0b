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

// Watches a job over the plain API, from its first event to its last, on its own thread. After each break it
// calls again with the last sequence number. Keeps all events in the order of their arrival. Thread-safe.
class Watcher {
 public:
  Watcher(const DaemonProcess& daemon, std::string job);
  // Cancels the stream.
  ~Watcher();

  // Waits until the stream ended after a terminal event, or with an error that is not a broken connection.
  bool WaitForEnd(absl::Duration timeout) const;
  // Waits until `count` events have arrived in all, or until the end.
  bool WaitForEvents(int64_t count, absl::Duration timeout) const;

  int64_t count() const;
  bool ended() const;
  // Returns every event in the order of its arrival.
  std::vector<v1::JobEvent> events() const;
  // Returns the status of the last stream. OK after a terminal event.
  grpc::Status status() const;
  // Returns the number of calls.
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

// Returns all events of a job by a single WatchJob from sequence 0. Expects the stream to end with OK.
std::vector<v1::JobEvent> ReadEvents(const DaemonProcess& daemon, const std::string& job);

// Expects the complete log of a job that ended: numbers from 1 without gaps or repeats, only this job, and
// only the last event terminal.
void ExpectWholeLog(const std::vector<v1::JobEvent>& events, const std::string& job);

// Expects two equal logs, and prints the first difference.
void ExpectSameLog(const std::vector<v1::JobEvent>& expected, const std::vector<v1::JobEvent>& actual);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_WATCHER_H_
