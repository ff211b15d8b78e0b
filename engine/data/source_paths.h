#ifndef TANDEM_ENGINE_DATA_SOURCE_PATHS_H_
#define TANDEM_ENGINE_DATA_SOURCE_PATHS_H_

#include <string>
#include <vector>

#include "tandem/v1/dataset.pb.h"

namespace tandem {

// What a path may lead to.
enum class PathKind { kFile, kFolder, kFileOrFolder };

// A path in a data set's source.
struct SourcePath {
  std::string field;            // Relative to the spec: "cifar.train[1]".
  std::string* path = nullptr;  // In the spec; may be empty.
  PathKind kind = PathKind::kFile;
  bool required = false;  // Whether the source makes no sense without it.
};

// All paths of `spec`'s source, those that are left out too; none where it has no source, or one without
// files. They are valid until the spec is changed otherwise.
std::vector<SourcePath> PathsOf(v1::DatasetSpec* spec);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_SOURCE_PATHS_H_
