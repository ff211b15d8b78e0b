#ifndef TANDEM_CLIENT_LIB_YAML_TEXT_H_
#define TANDEM_CLIENT_LIB_YAML_TEXT_H_

#include <yaml-cpp/yaml.h>

#include <string>

namespace tandem {

// What a text holds as YAML.
struct YamlText {
  YAML::Node first;       // Its first document; null where there is none.
  bool is_empty = false;  // Whether there is none.
  bool has_more = false;  // Whether there is another after the first.
};

// Throws as yaml-cpp does, and if the text has more than 80,000 keys and values. Reads JSON's pairs of
// escapes for a character beyond U+FFFF, as `\ud83d\ude00`, which yaml-cpp refuses. In place of
// YAML::LoadAll, which makes documents without end of a text that begins with a comma (yaml-cpp 0.7).
YamlText LoadYaml(const std::string& content);

}  // namespace tandem

#endif  // TANDEM_CLIENT_LIB_YAML_TEXT_H_
