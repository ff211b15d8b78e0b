#include "engine/checkpoint/safetensors_reader.h"

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace tandem {
namespace {

std::string File(const std::string& header, size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(header.size() >> (8 * i)));
  file += header;
  for (size_t i = 0; i < data_bytes; ++i) file.push_back(static_cast<char>(i));
  return file;
}

std::string Write(const std::string& content) {
  std::string path = testing::TempDir() + "/test.safetensors";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  return path;
}

TEST(SafetensorsReader, ReadsTensorsAndMetadata) {
  const std::string header =
      R"({"__metadata__":{"kind":"op"},"b":{"dtype":"U8","shape":[2,3],"data_offsets":[8,14]},)"
      R"("a":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"none":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})";
  const auto contents = ParseSafetensors(File(header, 14));
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->metadata.at("kind"), "op");
  ASSERT_EQ(contents->tensors.size(), 3u);
  EXPECT_EQ(contents->Find("a")->dtype(), DType::kFloat64);
  EXPECT_EQ(contents->Find("a")->shape(), Shape());
  EXPECT_EQ(contents->Find("b")->shape(), Shape({2, 3}));
  EXPECT_EQ(contents->Find("b")->data<uint8_t>()[5], 13);
  EXPECT_EQ(contents->Find("none")->elements(), 0);
  EXPECT_EQ(contents->Find("c"), nullptr);
}

TEST(SafetensorsReader, RefusesWhatIsNotSound) {
  const std::vector<std::string> files = {
      "",
      "1234567",
      File("{}", 1),
      File("[]", 0),
      File("{", 0),
      File("\xff{}", 0),
      File(R"({"__metadata__":{"a":1}})", 0),
      File(R"({"__metadata__":[]})", 0),
      File(R"({"a":1})", 0),
      File(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4),
      File(R"({"a":{"dtype":"","shape":[4],"data_offsets":[0,4]}})", 4),
      File(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,5]}})", 4),
      File(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4),
      File(R"({"a":{"dtype":"F32","shape":[1]}})", 4),
      File(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4),
      File(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
      File(R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", 4),
      File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
      File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,5]}})", 5),
      File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 4),
      File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
      File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4),
      // The product of the extents overflows to 0, and saturates.
      File(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
      File(R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4),
      // A gap, an overlap, and bytes without a tensor.
      File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8),
      File(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
          4),
      File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5),
      std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10),
      // Values whose parsing would not be safe.
      File(std::string(1 << 20, '['), 0),
      File(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4),
      File("{" + std::string(40 << 20, ' ') + "}", 0),
  };
  for (const std::string& file : files) {
    const auto contents = ParseSafetensors(file);
    EXPECT_EQ(contents.status().code(), absl::StatusCode::kDataLoss) << file;
    const auto header = ReadSafetensorsHeader(Write(file));
    EXPECT_EQ(header.status().code(), absl::StatusCode::kDataLoss) << file;
    EXPECT_NE(header.status().message().find("test.safetensors: "), absl::string_view::npos);
  }
}

TEST(SafetensorsReader, ReadsTheHeaderAlone) {
  const std::string header =
      R"({"__metadata__":{"kind":"op"},"b":{"dtype":"U8","shape":[2,3],"data_offsets":[8,14]},)"
      R"("a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})";
  const auto read = ReadSafetensorsHeader(Write(File(header, 14)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata.at("kind"), "op");
  ASSERT_EQ(read->tensors.size(), 2u);
  EXPECT_EQ(read->tensors.at("a").dtype, DType::kFloat64);
  EXPECT_EQ(read->tensors.at("b").shape, Shape({2, 3}));
}

TEST(SafetensorsReader, ReadsAFileAsItsBytes) {
  const std::string content =
      File(R"({"__metadata__":{"text":"\"[[[[{ \\"},"b":{"dtype":"U8","shape":[2,3],"data_offsets":[8,14]},)"
           R"("a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})",
           14);
  const auto read = ReadSafetensors(Write(content));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata.at("text"), "\"[[[[{ \\");
  EXPECT_EQ(read->Find("b")->data<uint8_t>()[5], 13);
  EXPECT_EQ(read->Find("a")->elements(), 1);
}

TEST(SafetensorsReader, ReadsTheWantedTensorsAlone) {
  const std::string content = File(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[2,6]},)"
      R"("c":{"dtype":"U8","shape":[3],"data_offsets":[6,9]}})",
      9);
  const std::string path = Write(content);
  std::map<std::string, std::vector<uint8_t>> read;
  const auto use = [&](const std::string& name, Tensor tensor) {
    read[name].assign(tensor.data<uint8_t>().begin(), tensor.data<uint8_t>().end());
  };
  const auto header = ReadSafetensorsTensors(path, {"b", "c", "d"}, use);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(read, (std::map<std::string, std::vector<uint8_t>>{{"c", {6, 7, 8}}}));
  EXPECT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->other_tensors.at("b"), "F8_E4M3");
  // Whole files, such as checkpoints, may have no such tensor.
  EXPECT_EQ(ParseSafetensors(content).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadSafetensors(path).status().code(), absl::StatusCode::kDataLoss);
}

TEST(SafetensorsReader, NamesTheFormatOfOtherSoftware) {
  const std::string zip = std::string("PK\x03\x04", 4) + std::string(26, 'x') + "archive/data.pkl";
  const auto header = ReadSafetensorsHeader(Write(zip));
  EXPECT_EQ(header.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(header.status().message().find("is a PyTorch file"), absl::string_view::npos) << header.status();
  EXPECT_NE(header.status().message().find("safetensors.torch.save_file"), absl::string_view::npos);
}

TEST(SafetensorsReader, NamesTheFileThatIsNotThere) {
  const auto contents = ReadSafetensors("/nonexistent/model.safetensors");
  EXPECT_EQ(contents.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(contents.status().message().find("/nonexistent/model.safetensors"), absl::string_view::npos);
}

}  // namespace
}  // namespace tandem
