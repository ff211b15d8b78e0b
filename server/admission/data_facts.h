#ifndef TANDEM_SERVER_ADMISSION_DATA_FACTS_H_
#define TANDEM_SERVER_ADMISSION_DATA_FACTS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/internal/v1/data_facts.pb.h"
#include "tandem/v1/dataset.pb.h"

// DatasetInfo as a message: from the worker that read a data set to the daemon, and in its database.

namespace tandem {

// The most entries of class_names, class_counts, mean and standard_deviation.
inline constexpr size_t kMostDataEntries = 10000;
// The most bytes of class_names together.
inline constexpr size_t kMostClassNamesBytes = 256 << 10;
// The most bytes of DataFacts.
inline constexpr size_t kMostDataFactsBytes = 1 << 20;

// Sets what `info` says, except class_names.
void SetDatasetInfo(const DatasetInfo& info, v1::Dataset* dataset);

// Sets class_names to the first names of `info`, up to the limits.
void SetClassNames(const DatasetInfo& info, v1::Dataset* dataset);

// Returns what admission needs of `info`.
internal::v1::DataFacts FactsOf(const DatasetInfo& info);

// Checks what a process that decodes users' files says of them before the daemon relies on it: such a process
// may have been taken over by a file. INTERNAL: no data set is like this.
absl::Status CheckFacts(const internal::v1::DataFacts& facts);

// Returns the reverse for the data set `spec`. Of class_names it has what `facts` has; it has no columns and
// no notices. INVALID_ARGUMENT: "normalization" does not fit the data set's shape.
absl::StatusOr<DatasetInfo> InfoOf(const internal::v1::DataFacts& facts, const v1::DatasetSpec& spec);

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_DATA_FACTS_H_
