#include "proto/job_file/job_text.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/job_file/yaml_text.h"

namespace tandem {
namespace {

constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

// Returns the first byte that is not part of well-formed UTF-8 (RFC 3629), or npos.
size_t FindBadUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = byte < 0x80 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    if ((byte >= 0x80 && byte < 0xC2) || byte > 0xF4 || i + length > text.size()) return i;
    uint32_t code = length == 1 ? byte : byte & (0x7F >> length);
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return i;
      code = code << 6 | (next & 0x3F);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    if (overlong || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return i;
    i += length;
  }
  return absl::string_view::npos;
}

// Returns yaml-cpp's message, and the usual reason if the line shows it.
std::string ExplainSyntaxError(absl::string_view content, const YAML::Exception& error) {
  if (dynamic_cast<const YAML::DeepRecursion*>(&error) != nullptr) return "nested too deep";
  const std::vector<absl::string_view> lines = absl::StrSplit(content, '\n');
  std::string text = error.msg;
  if (!error.mark.is_null() && error.mark.line < static_cast<int>(lines.size())) {
    const absl::string_view line = lines[error.mark.line];
    const absl::string_view indent = line.substr(0, line.find_first_not_of(" \t"));
    if (absl::StrContains(indent, "\t")) return text + "; tabs cannot indent YAML, use spaces";
    if (error.msg == "illegal map value")
      text += "; is the line indented as its neighbours, with one `name: value`?";
  }
  return text;
}

// Reads the document, which must be a mapping. If the mapping has the key `member`, reads this key's value.
std::vector<ReadProblem> ReadYaml(const std::string& text, const char* member, absl::string_view want,
                                  google::protobuf::Message* message, FieldPositions* positions) {
  // yaml-cpp throws even from plain accessors.
  try {
    const YamlText yaml = LoadYaml(text);
    if (yaml.has_more) {
      return {{{}, "", "several documents (parts begun by `---`); a job file has one"}};
    }
    if (yaml.is_empty || yaml.first.IsNull()) return {{{}, "", "the file is empty"}};
    YAML::Node node = yaml.first;
    std::string path;
    if (member != nullptr && node.IsMap() && yaml.first[member]) {
      path = member;
      node.reset(yaml.first[member]);
    }
    if (!node.IsMap()) return {{PositionOf(node), "", std::string(want)}};
    MessageReader reader;
    reader.ReadMessage(node, path, message);
    if (positions != nullptr && reader.problems().empty()) *positions = reader.positions();
    return reader.problems();
  } catch (const YAML::Exception& error) {
    const TextPosition position =
        error.mark.is_null() ? TextPosition{} : TextPosition{error.mark.line + 1, error.mark.column + 1};
    return {{position, "", absl::StrCat("not valid YAML or JSON: ", ExplainSyntaxError(text, error))}};
  }
}

}  // namespace

std::vector<ReadProblem> CheckText(std::string* text) {
  if (absl::StartsWith(*text, kByteOrderMark)) text->erase(0, sizeof(kByteOrderMark) - 1);
  if (const size_t zero = text->find('\0'); zero != std::string::npos) {
    return {{{}, "", absl::StrCat("a zero byte at offset ", zero, ": this is no text file")}};
  }
  if (const size_t bad = FindBadUtf8(*text); bad != absl::string_view::npos) {
    return {{{}, "", absl::StrCat("the byte at offset ", bad, " is not UTF-8")}};
  }
  if (absl::StripAsciiWhitespace(*text).empty()) return {{{}, "", "the file is empty"}};
  return {};
}

std::vector<ReadProblem> ReadYamlMessage(const std::string& text, absl::string_view want,
                                         google::protobuf::Message* message, FieldPositions* positions) {
  return ReadYaml(text, nullptr, want, message, positions);
}

std::vector<ReadProblem> ReadYamlMember(const std::string& text, const char* member, absl::string_view want,
                                        google::protobuf::Message* message) {
  return ReadYaml(text, member, want, message, nullptr);
}

std::vector<ReadProblem> ReadYamlJob(const std::string& text, v1::JobSpec* spec, FieldPositions* positions) {
  std::vector<ReadProblem> problems =
      ReadYamlMessage(text, "a job is a mapping: dataset:, model:, training:", spec, positions);
  if (!problems.empty()) return problems;
  const auto count = positions->find("replicas.count");
  if (count == positions->end() || spec->replicas().count() != 0) return {};
  return {{count->second, "replicas.count", kNoReplicas}};
}

}  // namespace tandem
