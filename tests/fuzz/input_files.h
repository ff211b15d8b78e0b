#ifndef TANDEM_TESTS_FUZZ_INPUT_FILES_H_
#define TANDEM_TESTS_FUZZ_INPUT_FILES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// An input that stands for several files: their contents with a line "--next file--" between them.
std::string JoinFiles(absl::Span<const std::string> contents);
// The first `count` of them; what is not there is empty, and the last has all that is left.
std::vector<absl::string_view> SplitFiles(absl::string_view input, size_t count);

// A file of this process in memory, made anew with this content. Returns its path.
std::string WriteInput(const std::string& name, absl::string_view content);
// The folder of all of them.
const std::string& InputFolder();

// Describes and opens the data set, and reads the first samples where there are some: what can be opened can
// be described, and as it is. Aborts where that does not hold.
void OpenAndRead(const v1::DatasetSpec& spec);

}  // namespace tandem

#endif  // TANDEM_TESTS_FUZZ_INPUT_FILES_H_
