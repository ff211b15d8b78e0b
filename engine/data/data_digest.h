#ifndef TANDEM_ENGINE_DATA_DATA_DIGEST_H_
#define TANDEM_ENGINE_DATA_DATA_DIGEST_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// The SHA-256 of the content of each path of a data set's source, in hexadecimal digits, by the path's field
// ("csv.train"). The digest of a folder covers its files' paths and contents, without hidden files. In a
// folder of images only images count. The digest of shards covers their paths and sizes alone, because a job
// of large shards would read all of them before each attempt.
//
// kDataSettings is the key of the digest of all settings that decide the samples: the rest of the source,
// limits and the split. kDataSamples is the key of DatasetInfo.samples_sha256. A checkpoint has it for
// samples in shards; DigestData does not return it.
using DataDigest = std::map<std::string, std::string>;

inline constexpr char kDataSettings[] = "settings";
inline constexpr char kDataSamples[] = "samples";

// Reads all files of `spec`, except shards. Paths can be opened unchanged. Errors name the path.
absl::StatusOr<DataDigest> DigestData(const v1::DatasetSpec& spec);

// Returns the fields whose digests differ. A field with a digest in only one of the two does not count.
std::vector<std::string> ChangedFields(const DataDigest& before, const DataDigest& now);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_DATA_DIGEST_H_
