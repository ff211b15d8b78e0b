#ifndef TANDEM_SERVER_ADMISSION_DATASET_READER_H_
#define TANDEM_SERVER_ADMISSION_DATASET_READER_H_

#include "absl/status/statusor.h"
#include "tandem/internal/v1/data_facts.pb.h"

namespace tandem {

// Reads the files of data sets. The daemon's reader starts a process for each call. Thread-safe.
class DatasetReader {
 public:
  virtual ~DatasetReader() = default;

  // Performs `task` and blocks until the task ends. INVALID_ARGUMENT: a file or the spec is wrong; fields are
  // relative to the DatasetSpec. RESOURCE_EXHAUSTED: the task needs more memory than its limit.
  // DEADLINE_EXCEEDED: the task takes too long. UNAVAILABLE: the reader was stopped.
  virtual absl::StatusOr<internal::v1::DataFacts> Read(const internal::v1::DataTask& task) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_DATASET_READER_H_
