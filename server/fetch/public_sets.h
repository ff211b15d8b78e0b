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
  // Where it is; the first that has it counts.
  std::vector<std::string> addresses;
};

// A public data set that many know by its name, and that can be fetched.
struct PublicSet {
  std::string name;
  std::vector<PublicFile> files;
};

// By name.
const std::vector<PublicSet>& PublicSets();
// Null where it is not among them.
const PublicSet* FindPublicSet(absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_PUBLIC_SETS_H_
