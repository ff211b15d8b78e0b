#ifndef TANDEM_CLIENT_LIB_YAML_TEXT_H_
#define TANDEM_CLIENT_LIB_YAML_TEXT_H_

#include <yaml-cpp/yaml.h>

#include <string>

namespace tandem {

// The documents of a YAML text.
struct YamlText {
  YAML::Node first;       // The first document. Null if there is none.
  bool is_empty = false;  // Whether there is no document.
  bool has_more = false;  // Whether a second document follows the first.
};

// Parses a YAML text. Throws yaml-cpp's exceptions, also if the text has more than 80,000 keys and values, or
// ends within quotes. Accepts JSON's pairs of escapes for a character beyond U+FFFF, such as `\ud83d\ude00`,
// which yaml-cpp refuses. Replaces YAML::LoadAll, which returns documents without end if a text begins with a
// comma (yaml-cpp 0.7).
YamlText LoadYaml(const std::string& content);

}  // namespace tandem

#endif  // TANDEM_CLIENT_LIB_YAML_TEXT_H_
