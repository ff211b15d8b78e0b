#ifndef TANDEM_SERVER_ADMISSION_READ_DATASET_H_
#define TANDEM_SERVER_ADMISSION_READ_DATASET_H_

#include "absl/status/statusor.h"
#include "server/admission/dataset_reader.h"
#include "tandem/internal/v1/data_facts.pb.h"

namespace tandem {

// Reads in the calling process. Because files may be hostile, only tests and processes that may crash call
// this class.
class LocalDatasetReader : public DatasetReader {
 public:
  absl::StatusOr<internal::v1::DataFacts> Read(const internal::v1::DataTask& task) override;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_READ_DATASET_H_
