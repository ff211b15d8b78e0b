#include "engine/data/data_names.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/utf8.h"

namespace tandem {
namespace {

constexpr size_t kShownNames = 20;
constexpr size_t kShownBytes = 60;

}  // namespace

std::vector<int32_t> ClassLabels(std::vector<int32_t> labels, int64_t classes) {
  std::vector<bool> is_given(classes);
  for (const int32_t label : labels) is_given[label] = true;
  for (int32_t label = 0; label < classes; ++label) {
    if (!is_given[label]) labels.push_back(label);
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != static_cast<int64_t>(i)) return labels;
  }
  return {};
}

std::vector<int32_t> ClassLabels(const std::vector<std::string>& own,
                                 const std::vector<std::string>& classes) {
  absl::flat_hash_map<absl::string_view, int32_t> known;
  for (size_t i = 0; i < classes.size(); ++i) known.emplace(classes[i], static_cast<int32_t>(i));
  std::vector<int32_t> labels;
  for (const std::string& name : own) {
    const auto found = known.find(name);
    if (found != known.end()) labels.push_back(found->second);
  }
  return ClassLabels(std::move(labels), static_cast<int64_t>(classes.size()));
}

std::string ListNames(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < std::min(kShownNames, names.size()); ++i) {
    const absl::string_view name = names[i];
    absl::StrAppend(&list, i == 0 ? "'" : ", '",
                    ToUtf8(absl::Utf8SafeCHexEscape(name.substr(0, kShownBytes))),
                    name.size() > kShownBytes ? "...'" : "'");
  }
  if (names.size() > kShownNames) absl::StrAppend(&list, " and ", names.size() - kShownNames, " more");
  return list;
}

std::string NameToUtf8(absl::string_view name) {
  if (IsUtf8(name)) return std::string(name);
  std::string text;
  for (const char character : name) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x80) {
      text.push_back(character);
    } else {
      text.push_back(static_cast<char>(0xC0 | byte >> 6));
      text.push_back(static_cast<char>(0x80 | (byte & 0x3F)));
    }
  }
  return text;
}

}  // namespace tandem
