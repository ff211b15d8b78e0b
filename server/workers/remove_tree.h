#ifndef TANDEM_SERVER_WORKERS_REMOVE_TREE_H_
#define TANDEM_SERVER_WORKERS_REMOVE_TREE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace tandem {

// Removes a file, or a folder with everything in it, if it exists. Also removes folders that a worker of this
// account closed, or that are deeper than a path allows. Follows no links, and has few files open at a time.
// Calls `stops` before each entry, and stops if it returns true. Otherwise returns an error if something
// stays.
absl::Status RemoveTree(const std::string& path, const std::function<bool()>& stops);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_REMOVE_TREE_H_
