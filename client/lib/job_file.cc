#include "client/lib/job_file.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <yaml-cpp/depthguard.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/lib/file_reading.h"
#include "client/lib/spelling.h"
#include "client/lib/yaml_text.h"

namespace tandem::client {
namespace {

constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

std::string Place(absl::string_view file, TextPosition position) {
  return position.line == 0 ? std::string(file)
                            : absl::StrCat(file, ":", position.line, ":", position.column);
}

std::string Line(absl::string_view file, const ReadProblem& problem) {
  return absl::StrCat(Place(file, problem.position), ": ", problem.path, problem.path.empty() ? "" : ": ",
                      problem.text);
}

// `name {` begins a message in text proto and nothing in YAML.
bool LooksLikeTextProto(absl::string_view content) {
  for (absl::string_view line : absl::StrSplit(content, '\n')) {
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    size_t end = 0;
    while (end < line.size() && (absl::ascii_isalnum(line[end]) || line[end] == '_')) ++end;
    const absl::string_view rest = absl::StripLeadingAsciiWhitespace(line.substr(end));
    if (end > 0 && absl::StartsWith(rest, "{")) return true;
  }
  return false;
}

JobFileFormat Detect(absl::string_view content, absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  for (const char* ending : {".yaml", ".yml", ".json"}) {
    if (absl::EndsWith(lower, ending)) return JobFileFormat::kYaml;
  }
  for (const char* ending : {".textproto", ".txtpb", ".pbtxt", ".prototxt"}) {
    if (absl::EndsWith(lower, ending)) return JobFileFormat::kTextProto;
  }
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(content), "{")) return JobFileFormat::kYaml;
  return LooksLikeTextProto(content) ? JobFileFormat::kTextProto : JobFileFormat::kYaml;
}

// The first byte that is not part of well-formed UTF-8 (RFC 3629); npos where there is none.
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

// Text proto's own messages, with the nearest field's name where one is unknown.
class ProblemCollector : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    constexpr char kUnknown[] = "\" has no field named \"";
    ReadProblem problem{{line + 1, column + 1}, "", message};
    const size_t split = message.find(kUnknown);
    const size_t begin = message.find('"');
    if (split != std::string::npos && begin < split) {
      const std::string type_name = message.substr(begin + 1, split - begin - 1);
      std::string field = message.substr(split + sizeof(kUnknown) - 1);
      field = field.substr(0, field.find('"'));
      std::vector<std::string> names;
      if (const auto* type =
              google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(type_name)) {
        for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
      }
      problem.path = field;
      problem.text = absl::StrCat("unknown field of ", type_name, "; ", SpellingHint(field, names));
    }
    problems.push_back(std::move(problem));
  }

  std::vector<ReadProblem> problems;
};

absl::Status ProblemStatus(absl::string_view name, const std::vector<ReadProblem>& problems) {
  return absl::InvalidArgumentError(absl::StrJoin(
      problems, "\n",
      [name](std::string* out, const ReadProblem& problem) { out->append(Line(name, problem)); }));
}

// What yaml-cpp says, with the usual reason where the line shows it.
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

// `what` a document is: "a job is a mapping: dataset:, model:, training:".
absl::Status ParseYaml(const std::string& content, const std::string& name, absl::string_view what,
                       google::protobuf::Message* message, std::map<std::string, TextPosition>* positions) {
  // yaml-cpp throws, also from what looks like plain access.
  try {
    const YamlText text = LoadYaml(content);
    if (text.has_more) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": several documents (parts begun by `---`); a job file has one"));
    }
    if (text.is_empty || text.first.IsNull()) return absl::InvalidArgumentError(name + ": the file is empty");
    if (!text.first.IsMap()) {
      return absl::InvalidArgumentError(absl::StrCat(Place(name, PositionOf(text.first)), ": ", what));
    }
    MessageReader reader;
    reader.ReadMessage(text.first, "", message);
    if (!reader.problems().empty()) return ProblemStatus(name, reader.problems());
    *positions = reader.positions();
  } catch (const YAML::Exception& error) {
    const TextPosition position =
        error.mark.is_null() ? TextPosition{} : TextPosition{error.mark.line + 1, error.mark.column + 1};
    return absl::InvalidArgumentError(absl::StrCat(
        Place(name, position), ": not valid YAML or JSON: ", ExplainSyntaxError(content, error)));
  }
  return absl::OkStatus();
}

absl::Status ParseTextProto(const std::string& content, const std::string& name,
                            google::protobuf::Message* message) {
  google::protobuf::TextFormat::Parser parser;
  ProblemCollector collector;
  parser.RecordErrorsTo(&collector);
  parser.SetRecursionLimit(50);
  if (!parser.ParseFromString(content, message)) return ProblemStatus(name, collector.problems);
  return absl::OkStatus();
}

// A file's content as text.
absl::StatusOr<std::string> CheckText(const std::string& content, const std::string& name) {
  if (content.size() > kLargestJobFile) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, " is larger than ", kLargestJobFile, " bytes, the most that is read"));
  }
  std::string text(absl::StripPrefix(content, kByteOrderMark));
  if (const size_t zero = text.find('\0'); zero != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": a zero byte at offset ", zero, ": this is no text file"));
  }
  if (const size_t bad = FindBadUtf8(text); bad != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": the byte at offset ", bad, " is not UTF-8"));
  }
  if (absl::StripAsciiWhitespace(text).empty())
    return absl::InvalidArgumentError(name + ": the file is empty");
  return text;
}

}  // namespace

absl::StatusOr<JobFile> ReadJobFile(const std::string& path) {
  absl::StatusOr<std::string> content = ReadWholeFile(path, kLargestJobFile);
  if (!content.ok()) return content.status();
  return ParseJobFile(*content, path == "-" ? "standard input" : path);
}

absl::StatusOr<JobFile> ParseJobFile(const std::string& content, const std::string& name,
                                     JobFileFormat format) {
  const absl::StatusOr<std::string> text = CheckText(content, name);
  if (!text.ok()) return text.status();
  if (format == JobFileFormat::kDetect) format = Detect(*text, name);
  JobFile file;
  file.name = name;
  const absl::Status parsed =
      format == JobFileFormat::kTextProto
          ? ParseTextProto(*text, name, &file.spec)
          : ParseYaml(*text, name, "a job is a mapping: dataset:, model:, training:", &file.spec,
                      &file.positions);
  if (!parsed.ok()) return parsed;
  const auto count = file.positions.find("replicas.count");
  if (count != file.positions.end() && file.spec.replicas().count() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Place(name, count->second), ": replicas.count: ", kNoReplicas));
  }
  return file;
}

absl::Status ParseMessageFile(const std::string& content, const std::string& name,
                              google::protobuf::Message* message,
                              std::map<std::string, TextPosition>* positions) {
  const absl::StatusOr<std::string> text = CheckText(content, name);
  if (!text.ok()) return text.status();
  return ParseYaml(*text, name, "want a mapping", message, positions);
}

absl::StatusOr<v1::DatasetSpec> ReadDatasetFile(const std::string& path) {
  const absl::StatusOr<std::string> content = ReadWholeFile(path, kLargestJobFile);
  if (!content.ok()) return content.status();
  const std::string name = path == "-" ? "standard input" : path;
  v1::DatasetSpec dataset;
  try {
    YAML::Node node = YAML::Load(std::string(absl::StripPrefix(*content, kByteOrderMark)));
    std::string prefix;
    if (node.IsMap() && node["dataset"]) {
      prefix = "dataset";
      node.reset(node["dataset"]);
    }
    if (!node.IsMap()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Place(name, PositionOf(node)), ": a data set is a mapping: a name:, or a source such as idx:"));
    }
    MessageReader reader;
    reader.ReadMessage(node, prefix, &dataset);
    if (!reader.problems().empty()) return ProblemStatus(name, reader.problems());
  } catch (const YAML::Exception& error) {
    const TextPosition position =
        error.mark.is_null() ? TextPosition{} : TextPosition{error.mark.line + 1, error.mark.column + 1};
    return absl::InvalidArgumentError(absl::StrCat(
        Place(name, position), ": not valid YAML or JSON: ", ExplainSyntaxError(*content, error)));
  }
  return dataset;
}

std::string DescribeField(const JobFile& file, absl::string_view field) {
  const absl::string_view path = absl::StripPrefix(field, "spec.");
  // The nearest thing around the field that the file has.
  for (absl::string_view prefix = path; !prefix.empty();) {
    if (const auto found = file.positions.find(std::string(prefix)); found != file.positions.end()) {
      return absl::StrCat(Place(file.name, found->second), ": ", path);
    }
    const size_t cut = prefix.find_last_of(".[");
    prefix = cut == absl::string_view::npos ? "" : prefix.substr(0, cut);
  }
  return path.empty() || path == "spec" ? file.name : absl::StrCat(file.name, ": ", path);
}

}  // namespace tandem::client
