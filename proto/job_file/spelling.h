#ifndef TANDEM_CLIENT_LIB_SPELLING_H_
#define TANDEM_CLIENT_LIB_SPELLING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// How many insertions, deletions, substitutions and swaps of neighbours make `b` of `a`, where no part is
// edited twice (Damerau 1964, the optimal string alignment distance).
int EditDistance(absl::string_view a, absl::string_view b);

// The name that `typed` was most probably meant to be, or "" where none is near. Case and '_', '-' do not
// count; a name that contains what was typed is near ("batch_size" for "global_batch_size").
std::string NearestName(absl::string_view typed, const std::vector<std::string>& names);

// "did you mean `relu`?" where a name is near, else "known here: relu, identity"; at most 24 names are
// listed.
std::string SpellingHint(absl::string_view typed, const std::vector<std::string>& names);

}  // namespace tandem

#endif  // TANDEM_CLIENT_LIB_SPELLING_H_
