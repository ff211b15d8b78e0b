#ifndef TANDEM_SERVER_WORKERS_DATASET_WORKERS_H_
#define TANDEM_SERVER_WORKERS_DATASET_WORKERS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admission/dataset_reader.h"
#include "server/workers/model_workers.h"
#include "server/workers/sandbox_options.h"

namespace tandem {

// Reads each data set in its own tandem-worker, with a memory limit and in the sandbox. So users' files are
// never decoded in the daemon. Thread-safe.
//
// A reading continues if its caller's client is gone: the result is kept for the next call.
class DatasetWorkers : public DatasetReader {
 public:
  struct Options {
    // The path of tandem-worker.
    std::string worker_program;
    // The most concurrent processes. Other calls of Read wait.
    int most_running = 2;
    // The longest time from the start of a process to its end.
    absl::Duration time_limit = absl::Minutes(10);
    // The most memory of a process, in bytes.
    int64_t memory_bytes = int64_t{1} << 30;
    SandboxOptions sandbox = {};
  };

  explicit DatasetWorkers(Options options);

  // Blocks until the process ends. INTERNAL: the process died. Other errors as DatasetReader.
  absl::StatusOr<internal::v1::DataFacts> Read(const internal::v1::DataTask& task) override;

  // Kills all processes. Running and later calls of Read return UNAVAILABLE. Idempotent.
  void Stop() { processes_.Stop(); }

 private:
  const int64_t memory_bytes_;
  ModelWorkers processes_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_DATASET_WORKERS_H_
