#ifndef TANDEM_SERVER_ADMISSION_DATASET_READER_H_
#define TANDEM_SERVER_ADMISSION_DATASET_READER_H_

#include "absl/status/statusor.h"
#include "tandem/internal/v1/data_facts.pb.h"

namespace tandem {

// Reads data sets' files. The daemon has a reader that starts a process for each call. Thread-safe.
class DatasetReader {
 public:
  virtual ~DatasetReader() = default;

  // Reads what `task` asks for, and returns when it is done. INVALID_ARGUMENT: a file or the spec is wrong;
  // fields are relative to the DatasetSpec. RESOURCE_EXHAUSTED: it takes more memory than it may.
  // DEADLINE_EXCEEDED: it takes too long. UNAVAILABLE: the reader was stopped.
  virtual absl::StatusOr<internal::v1::DataFacts> Read(const internal::v1::DataTask& task) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_DATASET_READER_H_
