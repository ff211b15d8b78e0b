#include "client/lib/yaml_text.h"

#include <yaml-cpp/eventhandler.h>

#include <sstream>

namespace tandem::client {
namespace {

// Only wants to know that there was a document.
class IgnoringHandler : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}
};

}  // namespace

YamlText LoadYaml(const std::string& content) {
  YamlText text;
  std::istringstream stream(content);
  YAML::Parser parser(stream);
  IgnoringHandler handler;
  if (!parser.HandleNextDocument(handler)) {
    text.is_empty = true;
    return text;
  }
  text.has_more = parser.HandleNextDocument(handler);
  text.first = YAML::Load(content);
  return text;
}

}  // namespace tandem::client
