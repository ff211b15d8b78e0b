#include "engine/checkpoint/checkpoint_file.h"

#include <string>
#include <vector>

#include "engine/base/faulty_env.h"
#include "engine/base/sha256.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPath[] = "/d/checkpoint.safetensors";
// The state resembles the checksum's place and must not be mistaken for it.
const std::string kState = R"({"step":3,"sha256":")" + std::string(64, '0') + R"("})";

std::vector<NamedTensor> Tensors(float first) {
  std::vector<NamedTensor> tensors;
  tensors.emplace_back("shared/dense_1.weight", Tensor::Of<float>(Shape({2}), {first, 2}));
  tensors.emplace_back("replica/0/sha256", Tensor::Of<double>(Shape(), {0.1}));
  return tensors;
}

// [0.5, -2].
const std::string kExampleTensor("\0\0\0\x3f\0\0\0\xc0", 8);

void Write(FaultyEnv* env, const std::string& content) {
  ASSERT_TRUE(WriteFileAtomically(env, kPath, [&](WritableFile& file) { return file.Append(content); }).ok());
}

TEST(CheckpointFileTest, IsReadBack) {
  FaultyEnv env;
  const absl::StatusOr<int64_t> size = WriteCheckpoint(&env, kPath, kState, Tensors(1));
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(*size, static_cast<int64_t>(env.ReadFile(kPath)->size()));
  const absl::StatusOr<CheckpointContents> read = ReadCheckpoint(&env, kPath);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->state, kState);
  EXPECT_EQ(read->tensors.size(), 2);
  EXPECT_THAT(read->tensors.at("shared/dense_1.weight").data<float>(), ElementsAre(1, 2));
  EXPECT_EQ(read->tensors.at("replica/0/sha256").data<double>()[0], 0.1);
  // Other programs can also read it.
  EXPECT_TRUE(ParseSafetensors(*env.ReadFile(kPath)).ok());
}

// The example in FORMAT.md.
TEST(CheckpointFileTest, TheExampleOfTheFormat) {
  FaultyEnv env;
  std::vector<NamedTensor> tensors;
  tensors.emplace_back("shared/dense_1.weight", Tensor::Of<float>(Shape({2}), {0.5, -2}));
  ASSERT_TRUE(WriteCheckpoint(&env, kPath, R"({"step":3})", tensors).ok());
  const std::string length("\x58\x01\0\0\0\0\0\0", 8);
  const std::string header = R"({"__metadata__":{"format":"tandem-checkpoint",)"
                             R"("sha256":"fc2d645e45ea42961e33ccbeac9c1f859628a539bb0693d239787627aa17520f",)"
                             R"("state":"{\"step\":3}",)"
                             R"("tensors":"{\"shared/dense_1.weight\":)"
                             R"(\"3c00f95169b7aefd7745a2b1a531e150bb2d1657a77de92dbe5fd8c303fd9066\"}",)"
                             R"("version":"3"},)"
                             R"("shared/dense_1.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  )";
  EXPECT_EQ(*env.ReadFile(kPath), length + header + kExampleTensor);
}

// A checkpoint of a later version is not damaged.
TEST(CheckpointFileTest, AnUnknownVersionIsSaid) {
  FaultyEnv env;
  ASSERT_TRUE(WriteCheckpoint(&env, kPath, "{}", Tensors(1)).ok());
  std::string content = *env.ReadFile(kPath);
  content.replace(content.find(R"("version":"3")"), 13, R"("version":"4")");
  const size_t digest = content.find(R"("sha256":")") + 10;
  content.replace(digest, 64, std::string(64, '0'));
  Sha256 hash;
  hash.Add(content);
  content.replace(digest, 64, *hash.Finish());
  Write(&env, content);
  const absl::Status status = ReadCheckpoint(&env, kPath).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("of version \"4\""));
}

TEST(CheckpointFileTest, SaysWhichTensorWasChanged) {
  FaultyEnv env;
  ASSERT_TRUE(WriteCheckpoint(&env, kPath, "{}", Tensors(1)).ok());
  EXPECT_TRUE(VerifyCheckpoint(&env, kPath).ok());
  std::string content = *env.ReadFile(kPath);
  content.back() ^= 1;
  Write(&env, content);
  for (const absl::Status& status : {ReadCheckpoint(&env, kPath).status(), VerifyCheckpoint(&env, kPath)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the tensor \"replica/0/sha256\" was changed"));
  }
  std::string without_list = content;
  without_list.replace(without_list.find(R"("tensors":)"), 10, R"("tensorX":)");
  Write(&env, without_list);
  EXPECT_THAT(std::string(VerifyCheckpoint(&env, kPath).message()), HasSubstr("it was changed"));
  content.pop_back();
  Write(&env, content);
  EXPECT_THAT(std::string(VerifyCheckpoint(&env, kPath).message()), HasSubstr("cut off"));
}

// A checkpoint may be larger than the remaining memory.
TEST(CheckpointFileTest, IsVerifiedPieceByPiece) {
  class NoWholeFiles : public FaultyEnv {
   public:
    absl::StatusOr<std::string> ReadFile(const std::string& path) override {
      ADD_FAILURE() << "the whole of " << path << " was read";
      return FaultyEnv::ReadFile(path);
    }
  };
  NoWholeFiles env;
  std::vector<NamedTensor> tensors;
  for (const char* name : {"first", "second"})
    tensors.emplace_back(name, Tensor(DType::kFloat32, Shape({700'001})));
  ASSERT_TRUE(WriteCheckpoint(&env, kPath, "{}", tensors).ok());
  EXPECT_TRUE(VerifyCheckpoint(&env, kPath).ok());
  int pieces = 0;
  const auto go_on = [&pieces] {
    return ++pieces < 4 ? absl::OkStatus() : absl::CancelledError("that is enough");
  };
  EXPECT_EQ(VerifyCheckpoint(&env, kPath, go_on).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(pieces, 4);
  auto file = env.OpenRandomAccess(kPath, RandomAccessEnv::Open::kExisting);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->WriteAt(*(*file)->Size() - 4 * 700'000, "x").ok());
  const absl::Status status = VerifyCheckpoint(&env, kPath);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the tensor \"second\" was changed"));
}

TEST(CheckpointFileTest, ThereIsNoneAtFirst) {
  FaultyEnv env;
  EXPECT_EQ(VerifyCheckpoint(&env, kPath).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadCheckpoint(&env, kPath).status().code(), absl::StatusCode::kNotFound);
}

TEST(CheckpointFileTest, AnyChangeIsFound) {
  FaultyEnv env;
  ASSERT_TRUE(WriteCheckpoint(&env, kPath, "{}", Tensors(1)).ok());
  const std::string good = *env.ReadFile(kPath);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    ASSERT_TRUE(WriteFileAtomically(&env, kPath, [&](WritableFile& file) { return file.Append(bad); }).ok());
    const absl::Status status = ReadCheckpoint(&env, kPath).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << "byte " << i << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kPath));
    EXPECT_EQ(VerifyCheckpoint(&env, kPath), status) << "byte " << i;
  }
}

TEST(CheckpointFileTest, AnyCutIsFound) {
  FaultyEnv env;
  ASSERT_TRUE(WriteCheckpoint(&env, kPath, "{}", Tensors(1)).ok());
  const std::string good = *env.ReadFile(kPath);
  for (size_t length = 0; length < good.size(); ++length) {
    ASSERT_TRUE(WriteFileAtomically(&env, kPath, [&](WritableFile& file) {
                  return file.Append(good.substr(0, length));
                }).ok());
    const absl::Status status = ReadCheckpoint(&env, kPath).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << length;
    EXPECT_EQ(VerifyCheckpoint(&env, kPath), status) << length;
  }
}

TEST(CheckpointFileTest, AModelIsNoCheckpoint) {
  FaultyEnv env;
  ASSERT_TRUE(WriteSafetensors(&env, kPath, Tensors(1), {{"framework", "tandem"}}).ok());
  EXPECT_EQ(ReadCheckpoint(&env, kPath).status().code(), absl::StatusCode::kDataLoss);
}

// At every failure and power cut, either the old or the new checkpoint exists, whole.
TEST(CheckpointFileTest, TheOneBeforeStandsUntilTheNewOneDoes) {
  for (int allowed = 0;; ++allowed) {
    FaultyEnv env;
    ASSERT_TRUE(WriteCheckpoint(&env, kPath, "old", Tensors(1)).ok());
    env.FailAfter(allowed);
    const bool written = WriteCheckpoint(&env, kPath, "new", Tensors(5)).ok();
    env.CutPower();
    const absl::StatusOr<CheckpointContents> read = ReadCheckpoint(&env, kPath);
    ASSERT_TRUE(read.ok()) << allowed << ": " << read.status();
    if (written) {
      EXPECT_EQ(read->state, "new");
      break;
    }
    EXPECT_TRUE(read->state == "old" || read->state == "new") << read->state;
    EXPECT_EQ(read->tensors.at("shared/dense_1.weight").data<float>()[0], read->state == "old" ? 1 : 5);
  }
}

}  // namespace
}  // namespace tandem
