#ifndef TANDEM_CLIENT_LIB_PACK_PICTURES_H_
#define TANDEM_CLIENT_LIB_PACK_PICTURES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem::client {

struct PackRequest {
  // A folder with a subfolder for each class, or with the parts of a data set. See ImageFolderSource.train.
  std::string folder;
  // The folder of the shards. It is created. It must be empty or missing.
  std::string shards;
  // The length of a shard, in bytes. At least 1. A shard has at least one sample.
  int64_t shard_bytes = int64_t{256} << 20;
};

struct PackedPictures {
  // The shards as a data set, with paths relative to their folder, and the names of the classes.
  v1::DatasetSpec spec;
  int64_t train = 0;       // Pictures.
  int64_t validation = 0;  // Pictures.
  int64_t shards = 0;
  int64_t bytes = 0;     // Of all shards.
  std::string left_out;  // The folder of the test part. Empty if there is none.
  // Files of the packed parts that are no pictures by their names, or are in no class's folder.
  int64_t skipped_files = 0;
};

// The name of the file that PackPictures writes beside the shards: the data set as JSON.
inline constexpr char kPackedSpec[] = "dataset.json";

// Writes the pictures of a folder into shards: "train-000000.tar" and, if the folder has a validation part,
// "validation-000000.tar". Copies the pictures without decoding them. Their order is random, but equal for
// equal folders. A label is the position of its class among the names of the training classes.
// INVALID_ARGUMENT: the folder has no classes, a class has no picture, or a file is no picture.
// FAILED_PRECONDITION: the folder of the shards is not empty, or cannot be made.
absl::StatusOr<PackedPictures> PackPictures(const PackRequest& request);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_PACK_PICTURES_H_
