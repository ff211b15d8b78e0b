#ifndef TANDEM_TESTS_FUZZ_INPUT_FILES_H_
#define TANDEM_TESTS_FUZZ_INPUT_FILES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Joins the contents of several files to one input, with a line "--next file--" between them.
std::string JoinFiles(absl::Span<const std::string> contents);
// Returns the first `count` files of an input. Missing files are empty, and the last file has the rest.
std::vector<absl::string_view> SplitFiles(absl::string_view input, size_t count);

// Writes a new file in this process's memory, and returns its path.
std::string WriteInput(const std::string& name, absl::string_view content);
// Returns the folder of these files.
const std::string& InputFolder();

// Describes and opens the data set, and reads its first samples. Aborts if an open data set has no
// description or differs from it.
void OpenAndRead(const v1::DatasetSpec& spec);

}  // namespace tandem

#endif  // TANDEM_TESTS_FUZZ_INPUT_FILES_H_
