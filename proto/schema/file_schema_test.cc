// The schemas know every field of job and sweep files, with its comment, and every short form.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_file/enum_names.h"
#include "proto/schema/schema_texts.h"
#include "tandem/v1/job.pb.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::SizeIs;

// The comments of fields and enum values by their full names, word by word.
std::map<std::string, std::vector<std::string>> ReadComments() {
  std::ifstream input("proto/schema/messages.descriptors", std::ios::binary);
  google::protobuf::FileDescriptorSet files;
  EXPECT_TRUE(files.ParseFromIstream(&input));
  std::map<std::string, std::vector<std::string>> comments;
  for (const google::protobuf::FileDescriptorProto& file : files.file()) {
    // Follows each place's path of numbers through the file's own messages.
    for (const auto& place : file.source_code_info().location()) {
      std::string name = file.package();
      const auto& path = place.path();
      const google::protobuf::DescriptorProto* message = nullptr;
      const google::protobuf::EnumDescriptorProto* type = nullptr;
      std::string enclosing;
      bool known = path.size() % 2 == 0;
      for (int i = 0; known && i + 1 < path.size(); i += 2) {
        const int kind = path[i], index = path[i + 1];
        enclosing = name;
        if (message == nullptr && kind == 4) {
          message = &file.message_type(index);
          absl::StrAppend(&name, ".", message->name());
        } else if (message == nullptr && type == nullptr && kind == 5) {
          type = &file.enum_type(index);
          absl::StrAppend(&name, ".", type->name());
        } else if (type != nullptr && kind == 2) {
          // Values are named as their type's neighbours; here they are told apart by their type.
          absl::StrAppend(&name, ".", type->value(index).name());
        } else if (message != nullptr && type == nullptr && kind == 4) {
          type = &message->enum_type(index);
          absl::StrAppend(&name, ".", type->name());
        } else if (message != nullptr && type == nullptr && kind == 2) {
          absl::StrAppend(&name, ".", message->field(index).name());
        } else {
          known = false;
        }
      }
      if (!known) continue;
      comments[name] = absl::StrSplit(place.leading_comments(), absl::ByAnyChar(" \n"), absl::SkipEmpty());
    }
  }
  return comments;
}

std::vector<std::string> Words(const json& text) {
  return absl::StrSplit(text.get<std::string>(), absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

// What a schema says once references are followed.
const json& Resolve(const json& schema, const json& root) {
  if (!schema.contains("$ref")) return schema;
  return root.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1)));
}

// All that a field's value may be: the schema itself, and those to which it refers.
std::vector<json> Parts(const json& schema, const json& root) {
  std::vector<json> parts = {Resolve(schema, root)};
  const json first = parts[0];
  for (const char* key : {"items", "else"}) {
    if (first.contains(key)) parts.push_back(Resolve(first[key], root));
  }
  if (first.contains("allOf")) {
    for (const json& part : first["allOf"]) parts.push_back(Resolve(part, root));
  }
  return parts;
}

bool IsOutputOnly(const std::vector<std::string>& comment) {
  return comment.size() >= 2 && comment[comment.size() - 2] == "Output" && comment.back() == "only.";
}

class FileSchemaTest : public ::testing::Test {
 protected:
  // Calls `look` with each message that a file can have, and the message's schema.
  void Walk(const Descriptor& type, const json& root,
            const std::function<void(const Descriptor&, const json&)>& look) {
    const json* first = &Resolve(root["allOf"][0], root);
    std::set<std::string> seen = {type.full_name()};
    std::vector<std::pair<const Descriptor*, const json*>> waiting = {{&type, first}};
    while (!waiting.empty()) {
      const auto [message, schema] = waiting.back();
      waiting.pop_back();
      look(*message, *schema);
      for (int i = 0; i < message->field_count(); ++i) {
        const FieldDescriptor& field = *message->field(i);
        const Descriptor* child = field.message_type();
        if (child == nullptr || child->full_name() == "google.protobuf.Value" ||
            !schema->at("properties").contains(field.name()) || !seen.insert(child->full_name()).second) {
          continue;
        }
        const json& place = schema->at("properties")[field.name()];
        const json& target = (field.is_repeated() ? place["items"] : place)["allOf"][0];
        ASSERT_TRUE(target.contains("$ref")) << field.full_name();
        waiting.push_back({child, &Resolve(target, root)});
      }
    }
  }

  // The words of a field's comment, and those of its type's comment.
  std::vector<std::string> WordsAbout(const FieldDescriptor& field) {
    std::vector<std::string> words = comments_.at(field.full_name());
    std::string type;
    if (field.enum_type() != nullptr) type = field.enum_type()->full_name();
    if (field.message_type() != nullptr) type = field.message_type()->full_name();
    if (absl::StartsWith(type, "tandem.")) {
      const std::vector<std::string>& more = comments_.at(type);
      words.insert(words.end(), more.begin(), more.end());
    }
    return words;
  }

  const std::map<std::string, std::vector<std::string>> comments_ = ReadComments();
  const json job_ = json::parse(JobFileSchema());
  const json sweep_ = json::parse(SweepFileSchema());
};

TEST_F(FileSchemaTest, JobFilesHaveEveryFieldWithItsComment) {
  int fields = 0;
  Walk(*v1::JobSpec::descriptor(), job_, [&](const Descriptor& type, const json& schema) {
    EXPECT_EQ(schema["additionalProperties"], false) << type.full_name();
    EXPECT_EQ(schema["properties"].size(), type.field_count()) << type.full_name();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      ASSERT_TRUE(schema["properties"].contains(field.name())) << field.full_name();
      const auto comment = comments_.find(field.full_name());
      ASSERT_NE(comment, comments_.end()) << field.full_name();
      EXPECT_FALSE(comment->second.empty()) << field.full_name();
      EXPECT_EQ(Words(schema["properties"][field.name()]["description"]), WordsAbout(field))
          << field.full_name();
      ++fields;
    }
  });
  EXPECT_GT(fields, 350);
}

TEST_F(FileSchemaTest, SweepFilesHaveEveryFieldButTheDaemonsOwn) {
  int fields = 0, of_daemon = 0;
  Walk(*v1::Sweep::descriptor(), sweep_, [&](const Descriptor& type, const json& schema) {
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const std::vector<std::string>& comment = comments_.at(field.full_name());
      EXPECT_EQ(schema["properties"].contains(field.name()), !IsOutputOnly(comment)) << field.full_name();
      ++(IsOutputOnly(comment) ? of_daemon : fields);
    }
  });
  EXPECT_GT(fields, 370);
  EXPECT_EQ(of_daemon, 9);
}

TEST_F(FileSchemaTest, EnumsHaveShortNamesWithTheirComments) {
  std::set<std::string> seen;
  Walk(*v1::JobSpec::descriptor(), job_, [&](const Descriptor& type, const json& schema) {
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (field.enum_type() == nullptr || !seen.insert(field.enum_type()->full_name()).second) continue;
      std::vector<json> parts = Parts(schema["properties"][field.name()], job_);
      const json& choices = parts.back()["oneOf"][0];
      EXPECT_EQ(choices["enum"].get<std::vector<std::string>>(), ShortEnumNames(*field.enum_type()));
      // A value has one form.
      EXPECT_EQ(parts.back()["oneOf"][1]["not"]["enum"], choices["enum"]) << field.full_name();
      ASSERT_EQ(choices["enumDescriptions"].size(), choices["enum"].size()) << field.full_name();
      for (int k = 0, choice = 0; k < field.enum_type()->value_count(); ++k) {
        const auto& value = *field.enum_type()->value(k);
        if (value.number() == 0) continue;
        EXPECT_EQ(Words(choices["enumDescriptions"][choice++]),
                  comments_.at(absl::StrCat(field.enum_type()->full_name(), ".", value.name())))
            << value.full_name();
      }
    }
  });
  EXPECT_GT(seen.size(), 15);
}

TEST_F(FileSchemaTest, FieldsHaveTheirTypes) {
  const json& replicas = job_["definitions"]["Replicas"]["properties"];
  EXPECT_THAT(replicas["count"]["type"], ElementsAre("integer", "string"));
  EXPECT_EQ(replicas["count"]["maximum"], 2147483647);
  EXPECT_EQ(job_["definitions"]["Training"]["properties"]["seed"]["minimum"], 0);
  // A value alone is a list, but a message alone is no list.
  EXPECT_THAT(replicas["worker_load"]["type"], ElementsAre("array", "number", "string"));
  const json& layers = job_["definitions"]["Model"]["properties"]["layers"];
  EXPECT_EQ(layers["type"], "array");
  EXPECT_THAT(layers["items"]["type"], ElementsAre("object", "string"));
  // Nothing chooses a member of a oneof, and is no value elsewhere.
  EXPECT_THAT(job_["definitions"]["Layer"]["properties"]["flatten"]["type"], ElementsAre("object", "null"));
  EXPECT_THAT(job_["definitions"]["Training"]["properties"]["weight_average"]["type"], ElementsAre("object"));
}

TEST_F(FileSchemaTest, NamesAloneStandForMembersOfTheOnlyOneof) {
  const auto names = [&](const char* message) -> json {
    const json& schema = job_["definitions"][message];
    return schema.contains("oneOf") ? schema["oneOf"][0]["enum"] : json::array();
  };
  EXPECT_THAT(names("Layer"), Contains("flatten"));
  EXPECT_THAT(names("Loss"), Contains("softmax_cross_entropy"));
  EXPECT_THAT(names("Layer"), Not(Contains("name")));
  // Its members are numbers: a name alone gives no number.
  EXPECT_THAT(names("GradientClipping"), SizeIs(0));
}

}  // namespace
}  // namespace tandem
