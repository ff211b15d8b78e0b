#include "client/lib/job_file.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/lib/file_reading.h"
#include "engine/base/spelling.h"

namespace tandem::client {
namespace {

std::string Place(absl::string_view file, TextPosition position) {
  return position.line == 0 ? std::string(file)
                            : absl::StrCat(file, ":", position.line, ":", position.column);
}

std::string Line(absl::string_view file, const ReadProblem& problem) {
  return absl::StrCat(Place(file, problem.position), ": ", problem.path, problem.path.empty() ? "" : ": ",
                      problem.text);
}

// `name {` begins a message in text proto, and means nothing in YAML.
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

// Collects text proto's messages. Adds the nearest field's name for an unknown field.
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

// Returns OK if there are no problems.
absl::Status ProblemStatus(absl::string_view name, const std::vector<ReadProblem>& problems) {
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(
      problems, "\n",
      [name](std::string* out, const ReadProblem& problem) { out->append(Line(name, problem)); }));
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

// Returns a file's content as text.
absl::StatusOr<std::string> TextOf(const std::string& content, const std::string& name) {
  if (content.size() > kLargestJobFile) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot read ", name, ": a job file may have at most ",
                                                     kLargestJobFile, " bytes; make it smaller"));
  }
  std::string text = content;
  if (const std::vector<ReadProblem> problems = CheckText(&text); !problems.empty()) {
    return ProblemStatus(name, problems);
  }
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
  const absl::StatusOr<std::string> text = TextOf(content, name);
  if (!text.ok()) return text.status();
  if (format == JobFileFormat::kDetect) format = Detect(*text, name);
  JobFile file;
  file.name = name;
  const absl::Status parsed = format == JobFileFormat::kTextProto
                                  ? ParseTextProto(*text, name, &file.spec)
                                  : ProblemStatus(name, ReadYamlJob(*text, &file.spec, &file.positions));
  if (!parsed.ok()) return parsed;
  return file;
}

absl::Status ParseMessageFile(const std::string& content, const std::string& name,
                              google::protobuf::Message* message, FieldPositions* positions) {
  const absl::StatusOr<std::string> text = TextOf(content, name);
  if (!text.ok()) return text.status();
  return ProblemStatus(name, ReadYamlMessage(*text, "want a mapping", message, positions));
}

absl::StatusOr<v1::DatasetSpec> ReadDatasetFile(const std::string& path) {
  const absl::StatusOr<std::string> content = ReadWholeFile(path, kLargestJobFile);
  if (!content.ok()) return content.status();
  const std::string name = path == "-" ? "standard input" : path;
  const absl::StatusOr<std::string> text = TextOf(*content, name);
  if (!text.ok()) return text.status();
  v1::DatasetSpec dataset;
  const std::vector<ReadProblem> problems = ReadYamlMember(
      *text, "dataset", "want a mapping with `name:`, or with a source such as `idx:`", &dataset);
  if (!problems.empty()) return ProblemStatus(name, problems);
  return dataset;
}

std::string DescribeField(const JobFile& file, absl::string_view field) {
  const absl::string_view path = absl::StripPrefix(field, "spec.");
  // Finds the innermost part of the path that the file has.
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
