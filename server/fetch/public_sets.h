#ifndef TANDEM_SERVER_FETCH_PUBLIC_SETS_H_
#define TANDEM_SERVER_FETCH_PUBLIC_SETS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// A file of a public data set.
struct PublicFile {
  std::string name;
  std::string sha256;
  // In order: the first address that has the file wins.
  std::vector<std::string> addresses;
};

// A public data set with a widely known name that the daemon can fetch.
struct PublicSet {
  std::string name;
  std::vector<PublicFile> files;
};

// Sorted by name.
const std::vector<PublicSet>& PublicSets();
// Returns null if no set has this name.
const PublicSet* FindPublicSet(absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_PUBLIC_SETS_H_
