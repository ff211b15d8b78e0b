#include "engine/checkpoint/safetensors_writer.h"

#include "engine/base/faulty_env.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

std::vector<NamedTensor> Tensors() {
  std::vector<NamedTensor> tensors;
  tensors.emplace_back("dense_1.weight", Tensor::Of<float>(Shape({2, 3}), {1, 2, 3, 4, 5, 6}));
  tensors.emplace_back("count", Tensor::Of<int64_t>(Shape(), {7}));
  tensors.emplace_back("byte", Tensor::Of<uint8_t>(Shape({1}), {9}));
  return tensors;
}

TEST(SafetensorsWriterTest, IsReadBack) {
  const std::string path = ::testing::TempDir() + "/writer_test.safetensors";
  ASSERT_TRUE(WriteSafetensors(Env::Real(), path, Tensors(), {{"job", "{\"name\": \"x\"}"}}).ok());
  const absl::StatusOr<SafetensorsContents> read = ReadSafetensors(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata.at("job"), "{\"name\": \"x\"}");
  ASSERT_NE(read->Find("dense_1.weight"), nullptr);
  EXPECT_EQ(read->Find("dense_1.weight")->shape(), Shape({2, 3}));
  EXPECT_THAT(read->Find("dense_1.weight")->data<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(read->Find("count")->data<int64_t>()[0], 7);
  EXPECT_EQ(read->Find("byte")->data<uint8_t>()[0], 9);
}

TEST(SafetensorsWriterTest, TheSameTensorsGiveTheSameBytes) {
  FaultyEnv env;
  ASSERT_TRUE(WriteSafetensors(&env, "/d/a", Tensors(), {}).ok());
  ASSERT_TRUE(WriteSafetensors(&env, "/d/b", Tensors(), {}).ok());
  EXPECT_EQ(*env.ReadFile("/d/a"), *env.ReadFile("/d/b"));
  EXPECT_EQ((*env.ReadFile("/d/a"))[0] % 8, 0);
}

TEST(SafetensorsWriterTest, AFailedWriteLeavesNoFile) {
  FaultyEnv env;
  env.FailAfter(3);
  EXPECT_FALSE(WriteSafetensors(&env, "/d/a", Tensors(), {}).ok());
  EXPECT_FALSE(env.ReadFile("/d/a").ok());
}

TEST(SafetensorsWriterTest, RefusesBadNames) {
  FaultyEnv env;
  std::vector<NamedTensor> tensors = Tensors();
  tensors.push_back(tensors.front());
  EXPECT_EQ(WriteSafetensors(&env, "/d/a", tensors, {}).code(), absl::StatusCode::kInvalidArgument);
  tensors = Tensors();
  tensors[0].first = "__metadata__";
  EXPECT_EQ(WriteSafetensors(&env, "/d/a", tensors, {}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem
