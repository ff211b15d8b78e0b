#ifndef TANDEM_SERVER_ADMISSION_DATA_FACTS_H_
#define TANDEM_SERVER_ADMISSION_DATA_FACTS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/internal/v1/data_facts.pb.h"
#include "tandem/v1/dataset.pb.h"

// DatasetInfo as a message. The worker that read a data set sends the message, and the daemon's database
// keeps the message.

namespace tandem {

// The most entries of class_names, class_counts, mean and standard_deviation.
inline constexpr size_t kMostDataEntries = 10000;
// The most bytes of all class_names together.
inline constexpr size_t kMostClassNamesBytes = 256 << 10;
// The most category_columns, and the most bytes of all their names together. The facts of a table above these
// limits have no category_columns. embed_categories.cc names the limits.
inline constexpr int kMostCategoryColumns = 10000;
inline constexpr size_t kMostColumnNamesBytes = 128 << 10;
// The most notices, and the most bytes of a notice.
inline constexpr int kMostNotices = 20;
inline constexpr size_t kMostNoticeBytes = 1000;
// The most bytes of a serialized DataFacts.
inline constexpr size_t kMostDataFactsBytes = 1 << 20;

// Copies `info` to `dataset`, except class_names.
void SetDatasetInfo(const DatasetInfo& info, v1::Dataset* dataset);

// Sets class_names to the first names of `info`, up to the limits.
void SetClassNames(const DatasetInfo& info, v1::Dataset* dataset);

// Returns the part of `info` that admission needs.
internal::v1::DataFacts FactsOf(const DatasetInfo& info);

// Checks the facts that a worker returned before the daemon relies on the facts: a hostile file may have
// taken over the worker. INTERNAL: no data set has such facts.
absl::Status CheckFacts(const internal::v1::DataFacts& facts);

// Converts facts of the data set `spec` back. The result has the class_names in `facts`, and no
// columns. INVALID_ARGUMENT: "normalization" does not fit the data set's shape.
absl::StatusOr<DatasetInfo> InfoOf(const internal::v1::DataFacts& facts, const v1::DatasetSpec& spec);

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_DATA_FACTS_H_
