#ifndef TANDEM_ENGINE_DATA_DATA_DIGEST_H_
#define TANDEM_ENGINE_DATA_DATA_DIGEST_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// The SHA-256 of the content of each path of a data set's source, in hexadecimal digits, by the path's field
// ("csv.train"). A folder's is that of its files' paths and contents; hidden files do not count, and in a
// folder of images only images do. kDataSettings has that of the rest of the source, of limits and of the
// split, which also decide on the samples.
using DataDigest = std::map<std::string, std::string>;

inline constexpr char kDataSettings[] = "settings";

// Reads all files of `spec`, whose paths can be opened as they are. Errors name the path.
absl::StatusOr<DataDigest> DigestData(const v1::DatasetSpec& spec);

// The fields that both have with other digests. Paths of which only one has a digest do not count.
std::vector<std::string> ChangedFields(const DataDigest& before, const DataDigest& now);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_DATA_DIGEST_H_
