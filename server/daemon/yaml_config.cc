#include "server/daemon/yaml_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/spelling.h"
#include "proto/job_file/yaml_text.h"

namespace tandem {
namespace {

[[noreturn]] void Fail(const YAML::Mark& mark, const std::string& problem) {
  throw CLI::ConfigError(absl::StrCat("line ", mark.line + 1, ": ", problem));
}

}  // namespace

std::vector<CLI::ConfigItem> YamlConfig::from_config(std::istream& input) const {
  YAML::Node root;
  try {
    const YamlText text = LoadYaml(std::string(std::istreambuf_iterator<char>(input), {}));
    if (text.has_more) throw CLI::ConfigError("has a second document; keep only one");
    root = text.first;
  } catch (const YAML::Exception& error) {
    Fail(error.mark, error.msg);
  }
  std::vector<CLI::ConfigItem> items;
  if (root.IsNull()) return items;
  if (!root.IsMap()) Fail(root.Mark(), "the file must be a mapping of option names to values");
  std::set<std::string> seen;
  for (const auto& entry : root) {
    if (!entry.first.IsScalar()) Fail(entry.first.Mark(), "an option's name must be a plain word");
    const std::string written = entry.first.Scalar();
    CLI::ConfigItem item;
    item.name = written;
    std::replace(item.name.begin(), item.name.end(), '_', '-');
    if (std::find(options_.begin(), options_.end(), item.name) == options_.end()) {
      const std::string close = NearestName(item.name, options_);
      Fail(entry.first.Mark(),
           absl::StrCat("there is no option '", absl::CHexEscape(written), "'",
                        close.empty() ? "; see --help" : absl::StrCat("; did you mean '", close, "'?")));
    }
    if (!seen.insert(item.name).second)
      Fail(entry.first.Mark(), absl::StrCat("'", item.name, "' is given twice"));
    if (entry.second.IsScalar()) {
      item.inputs.push_back(entry.second.Scalar());
    } else if (entry.second.IsSequence()) {
      // An empty list would leave the option at its default, so refuse it.
      if (entry.second.size() == 0) {
        Fail(entry.second.Mark(),
             absl::StrCat("'", item.name, "' is an empty list; remove the line to use the default"));
      }
      for (const YAML::Node& value : entry.second) {
        if (!value.IsScalar())
          Fail(value.Mark(), absl::StrCat("'", item.name, "' must be a list of plain values"));
        item.inputs.push_back(value.Scalar());
      }
    } else if (!entry.second.IsNull()) {
      Fail(entry.second.Mark(), absl::StrCat("'", item.name, "' must be a value or a list of values"));
    }
    // A name without a value keeps the default.
    if (!item.inputs.empty()) items.push_back(std::move(item));
  }
  return items;
}

}  // namespace tandem
