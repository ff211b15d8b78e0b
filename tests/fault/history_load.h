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

// The jobs that answers named, for all clients to use. Thread-safe.
class KnownJobs {
 public:
  struct Known {
    std::string job;
    // The request that created the job.
    std::string request_id;
    v1::JobSpec spec;
  };

  void Add(Known job);
  // Returns a job, usually a recent one. Names are empty without jobs.
  Known Pick(std::mt19937_64* random) const;
  size_t count() const;

 private:
  mutable Mutex mutex_;
  std::vector<Known> jobs_ ABSL_GUARDED_BY(mutex_);
};

// A client's load: calls of all kinds, drawn from a seed, one after the other, on jobs of all clients. Not
// thread-safe.
class HistoryLoad {
 public:
  // All arguments must outlive this object. `number` makes this client's requests distinct. All clients
  // together create about `most_jobs` jobs.
  HistoryLoad(HistoryClient* client, HistoryRecorder* recorder, KnownJobs* jobs, int number, uint64_t seed,
              size_t most_jobs);

  // Makes calls until this time of the recorder. The last call runs to its end.
  void Run(absl::Duration until);

 private:
  int Random(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  // Returns a deadline that is usually long enough, and sometimes too short.
  absl::Duration Deadline();
  v1::JobSpec NewSpec(const std::string& name);

  void Act();
  // Sends a new request, and repeats it until an answer arrives or time is over.
  void Submit();
  void SubmitWrong();
  // Sends an answered request again, with its spec or another spec.
  void SubmitAgain(const KnownJobs::Known& known);
  void List();
  // Watches from some sequence number, and again from the place of each break.
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
