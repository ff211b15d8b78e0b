#ifndef TANDEM_SERVER_WORKERS_REMOVE_TREE_H_
#define TANDEM_SERVER_WORKERS_REMOVE_TREE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace tandem {

// Removes a file, or a folder with all that is in it, where there is one, whatever a worker of this account
// has made there: folders that are closed to it, or deeper than a path can say. Follows no links in it, and
// has few files open at a time. `stops` is asked before each entry: the rest stays where it says so. Errors
// are those of what else stays.
absl::Status RemoveTree(const std::string& path, const std::function<bool()>& stops);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_REMOVE_TREE_H_
