#include "proto/job_file/yaml_text.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <cstdint>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace tandem {
namespace {

// A node takes about a kilobyte while a text is read. A network of 4,096 layers has 19 nodes for each layer.
constexpr int kMostNodes = 80'000;

// Counts the nodes of a text, to refuse texts with more nodes than a job can have. Remembers the last scalar.
class CountingHandler : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { Count(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Count(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string&) override {
    Count(mark);
    last_scalar_ = mark;
    last_is_plain_ = tag == "?";
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Count(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Count(mark);
  }
  void OnMapEnd() override {}

  const YAML::Mark& last_scalar() const { return last_scalar_; }
  bool last_is_plain() const { return last_is_plain_; }

 private:
  void Count(const YAML::Mark& mark) {
    if (++nodes_ > kMostNodes) {
      throw YAML::ParserException(mark, absl::StrCat("more than ", kMostNodes, " keys and values"));
    }
  }

  int nodes_ = 0;
  YAML::Mark last_scalar_ = YAML::Mark::null_mark();
  bool last_is_plain_ = true;
};

// Returns the value of the escape `\uD83D` at `place`, or 0 if there is none.
uint32_t EscapeAt(absl::string_view text, size_t place) {
  uint32_t value = 0;
  const bool is_escape = text.substr(place, 2) == "\\u" &&
                         absl::SimpleHexAtoi(text.substr(std::min(place + 2, text.size()), 4), &value);
  return is_escape ? value : 0;
}

// Replaces each pair of JSON escapes (the two halves of a character in UTF-16) by a single YAML escape.
std::string JoinSurrogates(absl::string_view text) {
  std::string joined;
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t high = EscapeAt(text, i);
    const uint32_t low = EscapeAt(text, std::min(i + 6, text.size()));
    if (high >= 0xD800 && high < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
      absl::StrAppendFormat(&joined, "\\U%08X", 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
      i += 11;
      continue;
    }
    joined += text[i];
    // The character after this backslash begins no escape, even if it is a backslash.
    if (text[i] == '\\' && i + 1 < text.size()) joined += text[++i];
  }
  return joined;
}

// Throws if the text ends within the quotes of its last scalar. yaml-cpp finds this only if no line break
// ends the text. With a line break, the scalar silently takes the rest of the text.
void CheckLastQuote(const std::string& content, const YAML::Mark& last_scalar) {
  std::istringstream stream(std::string(absl::StripTrailingAsciiWhitespace(content)));
  YAML::Parser parser(stream);
  CountingHandler handler;
  try {
    while (parser.HandleNextDocument(handler)) {
    }
  } catch (const YAML::ParserException& error) {
    if (error.msg != YAML::ErrorMsg::EOF_IN_SCALAR) throw;
    throw YAML::ParserException(last_scalar, "a quote begins here and does not end");
  }
}

YamlText Load(const std::string& content) {
  YamlText text;
  std::istringstream stream(content);
  YAML::Parser parser(stream);
  CountingHandler handler;
  if (!parser.HandleNextDocument(handler)) {
    text.is_empty = true;
    return text;
  }
  text.has_more = parser.HandleNextDocument(handler);
  if (!text.has_more && !handler.last_is_plain()) CheckLastQuote(content, handler.last_scalar());
  text.first = YAML::Load(content);
  return text;
}

}  // namespace

YamlText LoadYaml(const std::string& content) {
  try {
    return Load(content);
  } catch (const YAML::ParserException& error) {
    if (!absl::StrContains(error.msg, YAML::ErrorMsg::INVALID_UNICODE)) throw;
    return Load(JoinSurrogates(content));
  }
}

}  // namespace tandem
