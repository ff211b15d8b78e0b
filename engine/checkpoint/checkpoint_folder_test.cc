#include "engine/checkpoint/checkpoint_folder.h"

#include <sys/stat.h>

#include <string>

#include "engine/base/faulty_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(CheckpointFolderTest, FilesAreNamedByTheirStep) {
  EXPECT_EQ(CheckpointFileName(120), "checkpoint-120.safetensors");
  EXPECT_EQ(*StepOfCheckpointFile("checkpoint-120.safetensors"), 120);
  EXPECT_EQ(*StepOfCheckpointFile("checkpoint-0.safetensors"), 0);
  for (const char* name :
       {"checkpoint.safetensors", "checkpoint-.safetensors", "checkpoint--1.safetensors",
        "checkpoint-007.safetensors", "checkpoint- 7.safetensors", "checkpoint-+7.safetensors",
        "checkpoint-1e3.safetensors", "checkpoint-99999999999999999999.safetensors",
        "checkpoint-7.safetensors.tmp", "checkpoint-7.safetensors.damaged", "model.safetensors", ""}) {
    EXPECT_FALSE(StepOfCheckpointFile(name).ok()) << name;
  }
}

TEST(CheckpointFolderTest, ThoseThatAreThereNewestFirst) {
  for (Env* env : {static_cast<Env*>(new FaultyEnv), Env::Real()}) {
    const std::string folder = env == Env::Real() ? ::testing::TempDir() + "/checkpoints" : "/d";
    EXPECT_THAT(*ListCheckpointFiles(env, folder), IsEmpty());
    if (env == Env::Real()) {
      ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    }
    for (const char* name :
         {"checkpoint-9.safetensors", "checkpoint-100.safetensors", "checkpoint.safetensors",
          "checkpoint-20.safetensors", "checkpoint-200.safetensors.tmp", "checkpoint-3.safetensors.damaged",
          "model.safetensors", "model.safetensors.tmp"}) {
      ASSERT_TRUE(env->CreateFile(folder + "/" + name).ok());
    }
    EXPECT_THAT(
        *ListCheckpointFiles(env, folder),
        ElementsAre("checkpoint-100.safetensors", "checkpoint-20.safetensors", "checkpoint-9.safetensors"));
    RemoveUnfinishedCheckpoints(env, folder);
    EXPECT_FALSE(env->ReadFile(folder + "/checkpoint-200.safetensors.tmp").ok());
    EXPECT_TRUE(env->ReadFile(folder + "/model.safetensors.tmp").ok());
    EXPECT_EQ(env->ListFolder(folder)->size(), 7);
    if (env != Env::Real()) delete env;
  }
}

TEST(CheckpointFolderTest, OfDamagedOnesTheNewestStay) {
  FaultyEnv env;
  for (const char* name :
       {"checkpoint-9.safetensors.damaged", "checkpoint-100.safetensors.damaged",
        "checkpoint-20.safetensors.damaged", "checkpoint-10.safetensors", "notes.damaged"}) {
    ASSERT_TRUE(env.CreateFile(std::string("/d/") + name).ok());
  }
  RemoveOldDamagedCheckpoints(&env, "/d", 2);
  EXPECT_THAT(*env.ListFolder("/d"),
              UnorderedElementsAre("checkpoint-100.safetensors.damaged", "checkpoint-20.safetensors.damaged",
                                   "checkpoint-10.safetensors", "notes.damaged"));
  RemoveOldDamagedCheckpoints(&env, "/d", 2);
  EXPECT_EQ(env.ListFolder("/d")->size(), 4);
  RemoveOldDamagedCheckpoints(&env, "/nowhere", 2);
}

}  // namespace
}  // namespace tandem
