#ifndef TANDEM_ENGINE_DATA_SOURCE_PATHS_H_
#define TANDEM_ENGINE_DATA_SOURCE_PATHS_H_

#include <string>
#include <vector>

#include "tandem/v1/dataset.pb.h"

namespace tandem {

// The kind of target of a path. kShards is a file, a folder or a pattern of proto/data_folder/shards.h.
enum class PathKind { kFile, kFolder, kFileOrFolder, kShards };

// A path in a data set's source.
struct SourcePath {
  std::string field;            // Relative to the spec: "cifar.train[1]".
  std::string* path = nullptr;  // In the spec. May be empty.
  PathKind kind = PathKind::kFile;
  bool required = false;  // Whether the source needs it.
};

// Returns all paths of `spec`'s source, also empty paths. Returns none without a source or for a source
// without files. The pointers are valid until the spec is changed by other means.
std::vector<SourcePath> PathsOf(v1::DatasetSpec* spec);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_SOURCE_PATHS_H_
