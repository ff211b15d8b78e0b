#ifndef TANDEM_ENGINE_BASE_SPELLING_H_
#define TANDEM_ENGINE_BASE_SPELLING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// Returns the number of insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`,
// if no part is edited twice (Damerau 1964, the optimal string alignment distance).
int EditDistance(absl::string_view a, absl::string_view b);

// Returns the name that `typed` was most probably meant to be, or "" if no name is near. Ignores case, '_'
// and
// '-'. A name that contains `typed` is near: "batch_size" finds "global_batch_size".
std::string NearestName(absl::string_view typed, const std::vector<std::string>& names);

// Returns "did you mean `relu`?" if a name is near, else "known here: relu, identity" with at most 24 names.
std::string SpellingHint(absl::string_view typed, const std::vector<std::string>& names);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_SPELLING_H_
