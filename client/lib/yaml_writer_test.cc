#include "proto/job_file/yaml_writer.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <cmath>
#include <random>
#include <string>

#include "client/lib/job_file.h"
#include "gtest/gtest.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem::client {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

constexpr char kLenet[] = R"(name: lenet-fashion-mnist
dataset: {name: fashion-mnist}
model:
  input: {shape: [1, 28, 28]}
  layers:
  - conv2d: {filters: 20, kernel: [5, 5]}
  - max_pool2d: {size: [2, 2]}
  - name: head
    inputs: [max_pool2d_1]
    dense: {units: 500, activation: relu}
  - flatten: {}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {nesterov: {learning_rate: 0.02, momentum: 0.9}}
  global_batch_size: 128
  epochs: 3
  seed: 123
  shuffle: false
replicas: {count: 2}
)";

TEST(YamlWriterTest, WritesAJobAsAPersonWould) {
  const absl::StatusOr<JobFile> file = ParseJobFile(kLenet, "job.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ToYaml(file->spec), kLenet);
}

TEST(YamlWriterTest, WritesEventsWithTimesAndMaps) {
  v1::JobEvent event;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"pb(
                                                              job: "jobs/a"
                                                              sequence: 7
                                                              time { seconds: 1700000000 nanos: 500000000 }
                                                              epoch {
                                                                epoch: 1
                                                                training {
                                                                  loss: 0.5
                                                                  metrics { key: "top5" value: 0.75 }
                                                                  metrics { key: "accuracy" value: 0.25 }
                                                                }
                                                                replicas { rank: 1 device: "devices/cpu:0" }
                                                              })pb",
                                                            &event));
  EXPECT_EQ(ToYaml(event), R"(job: jobs/a
sequence: 7
time: "2023-11-14T22:13:20.500Z"
epoch:
  epoch: 1
  training: {loss: 0.5, metrics: {accuracy: 0.25, top5: 0.75}}
  replicas:
  - rank: 1
    device: "devices/cpu:0"
)");
}

TEST(YamlWriterTest, WritesLists) {
  EXPECT_EQ(ToYaml(std::vector<const Message*>{}), "[]\n");
  v1::Device first, second;
  first.set_name("a");
  EXPECT_EQ(ToYaml(std::vector<const Message*>{&first, &second}), "- name: a\n- {}\n");
}

TEST(YamlWriterTest, TextOfAnyKindComesBack) {
  for (const std::string text :
       {"",     " ",    "a", "a b", "a ", "true", "No",           "null",       "~",   "5",   "1e3", "-x",
        "a: b", "a #b", "#", "\"",  "\\", "a\nb", "\t",           "{",          "[x]", "'q'", "&a",  "*a",
        "!x",   "%",    "@", "`",   "é",  "名前", "\x01\x1f\x7f", "/data/x.gz", "..",  "0x1F"}) {
    v1::JobSpec spec;
    spec.set_name(text);
    spec.mutable_dataset()->mutable_idx()->set_train_images(text);
    spec.mutable_model()->add_layers()->add_inputs(text);
    const absl::StatusOr<JobFile> back = ParseJobFile(ToYaml(spec), "job.yaml");
    ASSERT_TRUE(back.ok()) << back.status() << ToYaml(spec);
    EXPECT_EQ(back->spec.name(), text);
    EXPECT_EQ(back->spec.model().layers(0).inputs(0), text);
  }
}

TEST(YamlWriterTest, NumbersComeBackExactly) {
  for (const double number :
       {0.1, 1.0 / 3, 1e-300, 1e22, 5e-324, 1.7976931348623157e308, -0.0, 123456789.0, 3e-5}) {
    v1::JobSpec spec;
    spec.mutable_dataset()->mutable_normalization()->set_scale(number);
    const absl::StatusOr<JobFile> back = ParseJobFile(ToYaml(spec), "job.yaml");
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->spec.dataset().normalization().scale(), number);
    EXPECT_EQ(std::signbit(back->spec.dataset().normalization().scale()), std::signbit(number));
  }
}

// Blocks of layers hold layers, so Fill needs a limit.
constexpr int kDeepest = 7;

// Fills a message at random with every kind of field that jobs have.
void Fill(std::mt19937& random, int depth, Message* message) {
  const Descriptor& type = *message->GetDescriptor();
  const Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (random() % 3 == 0) continue;
    const int count = field->is_repeated() ? random() % 4 : 1;
    for (int k = 0; k < count; ++k) {
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_MESSAGE:
          if (depth == kDeepest) break;
          Fill(random, depth + 1,
               field->is_repeated() ? reflection.AddMessage(message, field)
                                    : reflection.MutableMessage(message, field));
          break;
        case FieldDescriptor::CPPTYPE_ENUM: {
          const auto* value = field->enum_type()->value(random() % field->enum_type()->value_count());
          field->is_repeated() ? reflection.AddEnum(message, field, value)
                               : reflection.SetEnum(message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_INT64: {
          const int64_t value = static_cast<int64_t>(random()) << (random() % 32);
          field->is_repeated() ? reflection.AddInt64(message, field, value)
                               : reflection.SetInt64(message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_INT32:
          reflection.SetInt32(message, field, static_cast<int32_t>(random()));
          break;
        case FieldDescriptor::CPPTYPE_UINT64:
          reflection.SetUInt64(message, field, static_cast<uint64_t>(random()) << 32 | random());
          break;
        case FieldDescriptor::CPPTYPE_DOUBLE: {
          const double value =
              std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 200) - 100);
          field->is_repeated() ? reflection.AddDouble(message, field, value)
                               : reflection.SetDouble(message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_BOOL:
          reflection.SetBool(message, field, random() % 2 == 0);
          break;
        case FieldDescriptor::CPPTYPE_STRING: {
          std::string text;
          for (int n = random() % 8; n > 0; --n) text += "ab:- #'\"\\{}[]\n5.é"[random() % 16];
          field->is_repeated() ? reflection.AddString(message, field, text)
                               : reflection.SetString(message, field, text);
          break;
        }
        default:
          FAIL() << "no job has such a field: " << field->full_name();
      }
    }
  }
}

TEST(YamlWriterTest, RandomJobsComeBackEqual) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    v1::JobSpec spec;
    Fill(random, 0, &spec);
    if (spec.ByteSizeLong() == 0) continue;
    const std::string yaml = ToYaml(spec);
    const absl::StatusOr<JobFile> back = ParseJobFile(yaml, "job.yaml");
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << yaml;
    ASSERT_TRUE(google::protobuf::util::MessageDifferencer::Equals(back->spec, spec))
        << yaml << spec.DebugString();
  }
}

TEST(YamlWriterTest, ValuesOfAnyKindComeBackEqual) {
  v1::Sweep sweep;
  v1::SweepGridField* field = sweep.add_grid();
  field->set_field("model.layers[0].conv2d.kernel");
  field->add_values()->set_number_value(0.1);
  field->add_values()->set_string_value("0.1");
  field->add_values()->set_bool_value(true);
  for (int i = 3; i < 5; ++i)
    field->mutable_values()->Add()->mutable_list_value()->add_values()->set_number_value(i);
  (*field->add_values()->mutable_struct_value()->mutable_fields())["units"].set_number_value(8);
  const std::string yaml = ToYaml(sweep);
  EXPECT_NE(yaml.find("[0.1, \"0.1\", true, [3], [4], {\"units\":8}]"), std::string::npos) << yaml;
  v1::Sweep back;
  std::map<std::string, TextPosition> positions;
  const absl::Status read = ParseMessageFile(yaml, "sweep.yaml", &back, &positions);
  ASSERT_TRUE(read.ok()) << read << yaml;
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(back, sweep)) << back.DebugString();
}

}  // namespace
}  // namespace tandem::client
