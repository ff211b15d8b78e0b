#include "engine/base/env.h"

#include <string>

#include "engine/base/faulty_env.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

absl::Status Put(Env* env, const std::string& path, absl::string_view content) {
  return WriteFileAtomically(env, path, [&](WritableFile& file) { return file.Append(content); });
}

TEST(EnvTest, WritesAndReplacesRealFiles) {
  const std::string path = ::testing::TempDir() + "/env_test_file";
  ASSERT_TRUE(Put(Env::Real(), path, "first, and longer").ok());
  ASSERT_TRUE(Put(Env::Real(), path, "second").ok());
  EXPECT_EQ(*Env::Real()->ReadFile(path), "second");
  EXPECT_FALSE(Env::Real()->ReadFile(path + ".tmp").ok());
  EXPECT_TRUE(Env::Real()->RemoveFile(path).ok());
  EXPECT_EQ(Env::Real()->ReadFile(path).status().code(), absl::StatusCode::kNotFound);
}

TEST(EnvTest, ErrorsNameThePath) {
  const absl::Status status = Put(Env::Real(), "/nonexistent/folder/file", "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("/nonexistent/folder/file"), std::string::npos) << status;
}

TEST(EnvTest, AppendsToWhatIsThere) {
  const std::string path = ::testing::TempDir() + "/appended";
  FaultyEnv faulty;
  for (Env* const env : {Env::Real(), static_cast<Env*>(&faulty)}) {
    EXPECT_EQ(env->AppendToFile(path + "_not").status().code(), absl::StatusCode::kNotFound);
    ASSERT_TRUE(Put(env, path, "one ").ok());
    const auto file = env->AppendToFile(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Append("two").ok());
    EXPECT_TRUE((*file)->Close().ok());
    EXPECT_EQ(*env->ReadFile(path), "one two");
  }
}

// Whatever fails, and though the power goes right after: the old content or the new, never anything else; and
// the new one where success was reported.
TEST(WriteFileAtomicallyTest, LeavesOldOrNewAtEveryFault) {
  FaultyEnv counter;
  ASSERT_TRUE(Put(&counter, "/d/f", "new").ok());
  const int changes = counter.changes();
  ASSERT_GE(changes, 6);
  for (int fault = 0; fault <= changes; ++fault) {
    SCOPED_TRACE(fault);
    FaultyEnv env;
    ASSERT_TRUE(Put(&env, "/d/f", "old").ok());
    env.FailAfter(fault);
    const absl::Status status = Put(&env, "/d/f", "new");
    EXPECT_EQ(status.ok(), fault == changes);
    env.CutPower();
    const absl::StatusOr<std::string> content = env.ReadFile("/d/f");
    ASSERT_TRUE(content.ok());
    if (status.ok()) {
      EXPECT_EQ(*content, "new");
    } else {
      EXPECT_TRUE(*content == "old" || *content == "new") << *content;
    }
  }
}

}  // namespace
}  // namespace tandem
