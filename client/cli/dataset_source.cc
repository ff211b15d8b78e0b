#include "client/cli/dataset_source.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/match.h"
#include "client/lib/job_file.h"

namespace tandem::cli {

bool NamesFile(const std::string& word) {
  static constexpr absl::string_view kEndings[] = {".yaml", ".yml", ".json", ".textproto"};
  std::error_code ignored;
  return word == "-" || absl::StrContains(word, "/") ||
         std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](absl::string_view ending) { return absl::EndsWith(word, ending); }) ||
         std::filesystem::is_regular_file(word, ignored);
}

absl::StatusOr<v1::DatasetSpec> FindDataset(const std::string& name_or_file) {
  if (NamesFile(name_or_file) && !absl::StartsWith(name_or_file, "datasets/")) {
    return client::ReadDatasetFile(name_or_file);
  }
  v1::DatasetSpec dataset;
  dataset.set_name(name_or_file);
  return dataset;
}

}  // namespace tandem::cli
