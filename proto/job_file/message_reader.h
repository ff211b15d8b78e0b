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

// A place in a text. Line and column count from 1. Line 0 means no place.
struct TextPosition {
  int line = 0;
  int column = 0;
};

// A problem in a job file.
struct ReadProblem {
  TextPosition position;
  // The field's path, such as "model.layers[2].dense.units". Empty for the whole file.
  std::string path;
  std::string text;
};

// Reads parsed YAML into protocol messages by their descriptors. The reader is strict: each key must be the
// name of a field (or its lowerCamelCase form) and may appear once. Fields with OUTPUT_ONLY are refused. A
// oneof may have one member. A value must have the field's type and range. The reader accepts these short
// forms:
//  - A single value in place of a list (`kernel: 5`), except for lists of messages.
//  - A name in place of an empty message of a oneof (`loss: softmax_cross_entropy`, `- flatten`).
//  - Nothing in place of an empty message (`softmax_cross_entropy:`).
// A google.protobuf.Value takes any YAML. A scalar without quotes becomes true, false, or a number if JSON
// writes the number with the same characters. Other scalars become text.
// The reader continues after a problem and collects all problems, up to a limit. It also limits the number of
// values and their bytes, so aliases cannot make it read without end. Not thread-safe. Each text needs its
// own reader.
class MessageReader {
 public:
  // Sets fields of `message` from a mapping. `path` is the path of `message`.
  void ReadMessage(const YAML::Node& node, const std::string& path, google::protobuf::Message* message);

  // Sets a field of `message`, or a whole list. Replaces the field's old value. `path` is the path of the
  // field.
  void ReadField(const YAML::Node& node, const google::protobuf::FieldDescriptor& field,
                 const std::string& path, google::protobuf::Message* message);

  // Adds a value to a list. `path` is the path of the element.
  void AddElement(const YAML::Node& node, const google::protobuf::FieldDescriptor& field,
                  const std::string& path, google::protobuf::Message* message) {
    ReadValue(node, field, path, message);
  }

  // Returns the problems in the order of the text, at most 20.
  const std::vector<ReadProblem>& problems() const { return problems_; }

  // Returns the place of each path that was read.
  const std::map<std::string, TextPosition>& positions() const { return positions_; }

 private:
  static constexpr size_t kMostProblems = 20;

  struct Key {
    std::string name;
    TextPosition position;
  };

  void ReadEntry(const Key& key, const YAML::Node& value, const std::string& path,
                 google::protobuf::Message* message, std::map<std::string, std::string>* seen);
  // Returns a hint for a key that is no field of `type`, the message that is read.
  std::string UnknownFieldHint(const std::string& name, const google::protobuf::Descriptor& type) const;
  void ReadList(const YAML::Node& node, const google::protobuf::FieldDescriptor& field,
                const std::string& path, google::protobuf::Message* message);
  // Reads a value, or an element of a list.
  void ReadValue(const YAML::Node& node, const google::protobuf::FieldDescriptor& field,
                 const std::string& path, google::protobuf::Message* message);
  void ReadAnything(const YAML::Node& node, const std::string& path, google::protobuf::Value* value);
  // Reads a scalar that is the name of a message.
  void ReadNameForMessage(const YAML::Node& node, const std::string& path,
                          google::protobuf::Message* message);

  // Returns whether the list of problems has reached its limit.
  bool is_full() const { return problems_.size() >= kMostProblems; }
  bool Enter(const YAML::Node& node, const std::string& path);
  void Report(TextPosition position, const std::string& path, std::string text);

  std::vector<ReadProblem> problems_;
  std::map<std::string, TextPosition> positions_;
  int depth_ = 0;
  int values_ = 0;
  // The bytes of all scalars so far.
  size_t bytes_ = 0;
  // The key of the present value. Values without a place of their own are reported there.
  TextPosition key_position_;
  // The field that holds the message that is read. Null for the whole file.
  const google::protobuf::FieldDescriptor* holder_ = nullptr;
};

// Returns the place of a node.
TextPosition PositionOf(const YAML::Node& node);

// Joins "model" and "layers" to "model.layers". Returns `name` alone if `path` is empty.
std::string JoinPath(absl::string_view path, absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_CLIENT_LIB_MESSAGE_READER_H_
