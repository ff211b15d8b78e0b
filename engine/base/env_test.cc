#include "engine/base/env.h"

#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <string>
#include <utility>

#include "engine/base/faulty_env.h"
#include "engine/base/random_access_env.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

absl::Status Put(Env* env, const std::string& path, absl::string_view content,
                 const AtomicWrite& options = {}) {
  return WriteFileAtomically(
      env, path, [&](WritableFile& file) { return file.Append(content); }, options);
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

TEST(RandomAccessEnvTest, ReadsAndWritesAnywhere) {
  using Open = RandomAccessEnv::Open;
  const std::string path = ::testing::TempDir() + "/anywhere";
  FaultyEnv faulty;
  for (RandomAccessEnv* const env : {RandomAccessEnv::Real(), static_cast<RandomAccessEnv*>(&faulty)}) {
    EXPECT_EQ(env->OpenRandomAccess(path, Open::kExisting).status().code(), absl::StatusCode::kNotFound);
    const auto file = env->OpenRandomAccess(path, Open::kCreateNew);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(env->OpenRandomAccess(path, Open::kCreateNew).status().code(),
              absl::StatusCode::kAlreadyExists);
    ASSERT_TRUE((*file)->WriteAt(3, "three").ok());
    ASSERT_TRUE((*file)->WriteAt(1, "on").ok());
    ASSERT_TRUE((*file)->Sync().ok());
    char bytes[20];
    EXPECT_EQ(*(*file)->ReadAt(0, sizeof(bytes), bytes), 8);
    EXPECT_EQ(std::string(bytes, 8), std::string("\0onthree", 8));
    EXPECT_EQ(*(*file)->ReadAt(6, 1, bytes), 1);
    EXPECT_EQ(bytes[0], 'e');
    EXPECT_EQ(*(*file)->ReadAt(100, 1, bytes), 0);
    ASSERT_TRUE((*file)->Truncate(5).ok());
    EXPECT_EQ(*(*(*env->OpenRandomAccess(path, Open::kExisting))).Size(), 5);
    EXPECT_EQ(*(*(*env->OpenRandomAccess(path, Open::kEmpty))).Size(), 0);
    EXPECT_TRUE(env->RemoveFile(path).ok());
  }
}

// Other tests rely on this behaviour.
TEST(FaultyEnvTest, KeepsWhatIsAskedForAtTheEndOfTheMachine) {
  using Unsynced = FaultyEnv::Unsynced;
  const auto write = [](FaultyEnv* env) {
    const auto file = *env->OpenRandomAccess("/d/f", RandomAccessEnv::Open::kCreate);
    EXPECT_TRUE(file->WriteAt(0, std::string(2000, 'a')).ok());
    EXPECT_TRUE(file->Sync().ok());
    EXPECT_TRUE(env->SyncDirectory("/d").ok());
    EXPECT_TRUE(file->WriteAt(100, std::string(1500, 'b')).ok());
  };
  std::set<std::string> seen;
  for (int seed = 0; seed < 100; ++seed) {
    FaultyEnv env;
    write(&env);
    env.CutPower(Unsynced::kSome, seed);
    seen.insert(*env.ReadFile("/d/f"));
  }
  // The lengths after a power cut: 0, 512, 1024, 1536 and the whole length.
  EXPECT_EQ(seen.size(), 5);
  FaultyEnv lost, kept;
  write(&lost);
  write(&kept);
  lost.CutPower();
  kept.CutPower(Unsynced::kKept);
  EXPECT_EQ(*lost.ReadFile("/d/f"), std::string(2000, 'a'));
  EXPECT_EQ((*kept.ReadFile("/d/f"))[1000], 'b');
  EXPECT_TRUE(seen.contains(*lost.ReadFile("/d/f")));
  EXPECT_TRUE(seen.contains(*kept.ReadFile("/d/f")));
}

TEST(FaultyEnvTest, AFailedSyncIsNotMadeGoodByTheNext) {
  FaultyEnv env;
  const auto file = *env.OpenRandomAccess("/d/f", RandomAccessEnv::Open::kCreate);
  ASSERT_TRUE(env.SyncDirectory("/d").ok());
  ASSERT_TRUE(file->WriteAt(0, "one").ok());
  env.FailOnceAfter(0, absl::ResourceExhaustedError("full"));
  EXPECT_EQ(file->Sync().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_EQ(*env.ReadFile("/d/f"), "one");
  env.CutPower();
  EXPECT_EQ(*env.ReadFile("/d/f"), "");
}

// After any failed change and a power cut, the file has its old or its new content. After success it has its
// new content.
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

// At a power cut, the old or the new content is whole, but the name may lead to the old content.
TEST(WriteFileAtomicallyTest, SyncsAsMuchAsWanted) {
  using Durable = AtomicWrite::Durable;
  for (const auto& [durable, changes] : {std::pair(Durable::kNothing, 4), std::pair(Durable::kContent, 5),
                                         std::pair(Durable::kContentAndName, 6)}) {
    for (const FaultyEnv::Unsynced unsynced : {FaultyEnv::Unsynced::kLost, FaultyEnv::Unsynced::kKept}) {
      SCOPED_TRACE(changes);
      FaultyEnv env;
      ASSERT_TRUE(Put(&env, "/d/f", "old").ok());
      const int before = env.changes();
      ASSERT_TRUE(Put(&env, "/d/f", "new", {.durable = durable}).ok());
      EXPECT_EQ(env.changes() - before, changes);
      EXPECT_EQ(*env.ReadFile("/d/f"), "new");
      env.CutPower(unsynced);
      const bool is_new = durable == Durable::kContentAndName || unsynced == FaultyEnv::Unsynced::kKept;
      EXPECT_EQ(*env.ReadFile("/d/f"), is_new ? "new" : "old");
    }
  }
}

TEST(WriteFileAtomicallyTest, PrivateFilesAreForTheirOwner) {
  const std::string path = ::testing::TempDir() + "/env_test_private";
  const std::string other = ::testing::TempDir() + "/env_test_other";
  ASSERT_TRUE(Put(Env::Real(), path, "old").ok());
  ASSERT_TRUE(Put(Env::Real(), other, "other").ok());
  // A link in the temporary file's place is not followed.
  unlink((path + kUnfinishedEnding).c_str());
  ASSERT_EQ(symlink(other.c_str(), (path + kUnfinishedEnding).c_str()), 0);
  const mode_t mask = umask(0);
  const absl::Status written = Put(Env::Real(), path, "secret", {.is_private = true});
  umask(mask);
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(*Env::Real()->ReadFile(path), "secret");
  EXPECT_EQ(*Env::Real()->ReadFile(other), "other");
  struct stat info = {};
  ASSERT_EQ(lstat(path.c_str(), &info), 0);
  EXPECT_TRUE(S_ISREG(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0600);
}

}  // namespace
}  // namespace tandem
