#ifndef TANDEM_CLIENT_LIB_MESSAGE_READER_H_
#define TANDEM_CLIENT_LIB_MESSAGE_READER_H_

#include <google/protobuf/message.h>
#include <google/protobuf/struct.pb.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// A place in a text, both from 1; line 0: nowhere.
struct TextPosition {
  int line = 0;
  int column = 0;
};

// Something wrong at a place of a job file.
struct ReadProblem {
  TextPosition position;
  // Such as "model.layers[2].dense.units"; empty for the whole.
  std::string path;
  std::string text;
};

// Reads parsed YAML into protocol messages by their descriptors, strictly: keys must be names of fields (or
// their lowerCamelCase form), each once; of a oneof one at most; values must be of the field's type and
// range. Kindnesses:
//  - one value stands for a list of it (`kernel: 5`), unless it is a list of messages;
//  - a name alone stands for an empty message of a oneof (`loss: softmax_cross_entropy`, `- flatten`);
//  - nothing stands for an empty message (`softmax_cross_entropy:`).
// A google.protobuf.Value is whatever stands there. A scalar without quotes is true, false, or a number if
// the number is written the same in JSON; other scalars are text. The reader goes on after a problem and
// finds all problems at once, up to a limit. Aliases cannot make it read more than a bounded number of
// values and of their bytes. Not thread-safe; one reader a text.
class MessageReader {
 public:
  // Sets fields of `message` from a mapping; `path` is the message's own.
  void ReadMessage(const YAML::Node& node, const std::string& path, google::protobuf::Message* message);

  // Sets one field of `message`, a list whole; what the field held before is gone. `path` is the field's.
  void ReadField(const YAML::Node& node, const google::protobuf::FieldDescriptor& field,
                 const std::string& path, google::protobuf::Message* message);

  // Adds one value to a list. `path` is the element's.
  void AddElement(const YAML::Node& node, const google::protobuf::FieldDescriptor& field,
                  const std::string& path, google::protobuf::Message* message) {
    ReadValue(node, field, path, message);
  }

  // In the order of the text, at most 20.
  const std::vector<ReadProblem>& problems() const { return problems_; }

  // Where each path that was read stands.
  const std::map<std::string, TextPosition>& positions() const { return positions_; }

 private:
  static constexpr size_t kMostProblems = 20;

  struct Key {
    std::string name;
    TextPosition position;
  };

  void ReadEntry(const Key& key, const YAML::Node& value, const std::string& path,
                 google::protobuf::Message* message, std::map<std::string, std::string>* seen);
  void ReadList(const YAML::Node& node, const google::protobuf::FieldDescriptor& field,
                const std::string& path, google::protobuf::Message* message);
  // A value, or one element of a list.
  void ReadValue(const YAML::Node& node, const google::protobuf::FieldDescriptor& field,
                 const std::string& path, google::protobuf::Message* message);
  void ReadAnything(const YAML::Node& node, const std::string& path, google::protobuf::Value* value);
  // `node` is a name alone where a message is wanted.
  void ReadNameForMessage(const YAML::Node& node, const std::string& path,
                          google::protobuf::Message* message);

  // Whether no further problem would be kept.
  bool is_full() const { return problems_.size() >= kMostProblems; }
  bool Enter(const YAML::Node& node, const std::string& path);
  void Report(TextPosition position, const std::string& path, std::string text);

  std::vector<ReadProblem> problems_;
  std::map<std::string, TextPosition> positions_;
  int depth_ = 0;
  int values_ = 0;
  // Of scalars.
  size_t bytes_ = 0;
  // Where the value that is being read is named, for values that have no place of their own.
  TextPosition key_position_;
};

// Where a node stands.
TextPosition PositionOf(const YAML::Node& node);

// "model" and "layers" as "model.layers"; no dot where there is no path yet.
std::string JoinPath(absl::string_view path, absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_CLIENT_LIB_MESSAGE_READER_H_
