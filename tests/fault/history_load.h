#ifndef TANDEM_TESTS_FAULT_HISTORY_LOAD_H_
#define TANDEM_TESTS_FAULT_HISTORY_LOAD_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "tandem/v1/job.pb.h"
#include "tests/fault/history_client.h"

namespace tandem::testing {

// The jobs that some client was told it had made, for all clients to act on. Thread-safe.
class KnownJobs {
 public:
  struct Known {
    std::string job;
    // The request that made it.
    std::string request_id;
    v1::JobSpec spec;
  };

  void Add(Known job);
  // Mostly one of the newest; empty names where there is none.
  Known Pick(std::mt19937_64* random) const;
  size_t count() const;

 private:
  mutable Mutex mutex_;
  std::vector<Known> jobs_ ABSL_GUARDED_BY(mutex_);
};

// What one client does: calls of all kinds, drawn from a seed, one after the other; on jobs of all clients.
// Not thread-safe.
class HistoryLoad {
 public:
  // All must outlive it. `number` tells its requests from those of others. All clients together make about
  // `most_jobs` jobs.
  HistoryLoad(HistoryClient* client, HistoryRecorder* recorder, KnownJobs* jobs, int number, uint64_t seed,
              size_t most_jobs);

  // Until the recorder's time is this, and a call that was begun has ended.
  void Run(absl::Duration until);

 private:
  int Random(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  // Mostly time enough; sometimes too little.
  absl::Duration Deadline();
  v1::JobSpec NewSpec(const std::string& name);

  void Act();
  // A new request, repeated until there is an answer, or the time is over.
  void Submit();
  void SubmitWrong();
  // A request that was answered before, with its spec or another one.
  void SubmitAgain(const KnownJobs::Known& known);
  void List();
  // From somewhere, and again from where it broke off.
  void Watch(const std::string& job);

  HistoryClient* const client_;
  HistoryRecorder* const recorder_;
  KnownJobs* const jobs_;
  const int number_;
  const size_t most_jobs_;
  std::mt19937_64 random_;
  absl::Duration until_;
  int requests_ = 0;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_LOAD_H_
