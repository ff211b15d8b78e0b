#include <spdlog/sinks/ostream_sink.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/base/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/datasets/full_disk_env.h"
#include "server/datasets/sample_upload.h"
#include "server/datasets/uploads.h"
#include "server/datasets/uploads_fixture.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

using UploadsRemovalTest = UploadsFixture;

// Records the targets of renames, or fails renames.
class RenamingEnv : public FullDiskEnv {
 public:
  absl::Status RenameFile(const std::string& from, const std::string& to) override {
    if (fails) return absl::PermissionDeniedError("no renaming");
    renamed.push_back(to);
    return FullDiskEnv::RenameFile(from, to);
  }
  bool fails = false;
  std::vector<std::string> renamed;
};

// Captures the log while alive.
class CapturedLog {
 public:
  CapturedLog() : before_(spdlog::default_logger()) {
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    sink->set_pattern("%v");
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("captured", sink));
  }
  ~CapturedLog() { spdlog::set_default_logger(before_); }
  // Returns the text since the last call.
  std::string Take() {
    std::string text = text_.str();
    text_.str("");
    return text;
  }

 private:
  const std::shared_ptr<spdlog::logger> before_;
  std::ostringstream text_;
};

TEST_F(UploadsRemovalTest, StaleOnesExpire) {
  const v1::Upload stale = Made(sample_);
  clock_.Advance(kExpiry / 2);
  const v1::Upload fresh = Made(SampleUpload::OneFile("a", "1"));
  ASSERT_TRUE(Send(sample_, stale, 1).ok());
  clock_.Advance(kExpiry / 2 + absl::Minutes(1));
  uploads_->RemoveExpired();
  EXPECT_TRUE(Exists(stale));
  clock_.Advance(kExpiry / 2);
  uploads_->RemoveExpired();
  EXPECT_FALSE(Exists(stale));
  EXPECT_FALSE(Exists(fresh));
  EXPECT_EQ(uploads_->Get(Id(stale)).status().code(), absl::StatusCode::kNotFound);
  // A later daemon also removes expired uploads, but never a set's files.
  const v1::Upload owned = Made(sample_);
  ASSERT_TRUE(Send(sample_, owned).ok());
  const v1::Upload other = Made(SampleUpload::OneFile("a", "1"));
  clock_.Advance(kExpiry * 10);
  Open({{Id(owned), {owned.bytes(), "ann"}}});
  EXPECT_TRUE(Exists(other));
  clock_.Advance(absl::Hours(1));
  uploads_->RemoveExpired();
  EXPECT_TRUE(Exists(owned));
  EXPECT_FALSE(Exists(other));
}

TEST_F(UploadsRemovalTest, AClockThatIsSetAheadEndsNone) {
  const v1::Upload upload = Made(sample_);
  clock_.SetAhead(kExpiry * 10);
  uploads_->RemoveExpired();
  EXPECT_TRUE(Exists(upload));
  clock_.SetAhead(-kExpiry * 10);
  clock_.Advance(kExpiry + absl::Minutes(1));
  uploads_->RemoveExpired();
  EXPECT_FALSE(Exists(upload));
}

// The restored database lacks the sets since the backup, so an unknown upload may belong to a set.
TEST_F(UploadsRemovalTest, WhatIsFromBeforeARestorationStays) {
  const SampleUpload one = SampleUpload::OneFile("a", "1");
  const v1::Upload set = Made(one);
  ASSERT_TRUE(Send(one, set).ok());
  ASSERT_TRUE(uploads_->Claim(Id(set)).ok());
  const v1::Upload known = Made(sample_);
  ASSERT_TRUE(Send(sample_, known).ok());
  const v1::Upload begun = Made(SampleUpload::OneFile("b", "2"));
  const std::string broken = folder_.path() + "/uploads/0123456789abcdef";
  std::filesystem::create_directories(broken + "/files");
  std::ofstream(broken + "/files/precious") << "1";

  clock_.Advance(absl::Minutes(1));
  const absl::Time restored = clock_.Now();
  clock_.Advance(kExpiry * 10);
  Open({{Id(known), {known.bytes(), "ann"}}}, restored);
  EXPECT_TRUE(Exists(set));
  EXPECT_TRUE(Exists(known));
  EXPECT_TRUE(Exists(begun));
  EXPECT_TRUE(std::filesystem::exists(broken + "/files/precious"));
  std::vector<std::string> names;
  for (const v1::Upload& upload : uploads_->FromBeforeRestoration()) {
    EXPECT_FALSE(upload.has_expire_time());
    names.push_back(upload.name());
  }
  EXPECT_THAT(names, UnorderedElementsAre(set.name(), begun.name()));
  EXPECT_THAT(uploads_->Unreadable(), ElementsAre("0123456789abcdef"));
  EXPECT_EQ(uploads_->List().size(), 2);

  // Later uploads expire as usual and get the usual room.
  std::vector<v1::Upload> later;
  for (const char* name : {"1", "2", "3"}) {
    later.push_back(Made(SampleUpload::OneFile(name, "later")));
    EXPECT_TRUE(later.back().has_expire_time());
  }
  EXPECT_EQ(GetReason(Refused(1)), "TOO_MANY_UPLOADS");
  clock_.Advance(kExpiry * 2);
  uploads_->RemoveExpired();
  for (const v1::Upload& upload : later) EXPECT_FALSE(Exists(upload));
  EXPECT_TRUE(Exists(set));
  EXPECT_EQ(uploads_->FromBeforeRestoration().size(), 2);

  // Somebody may register the upload again without sending it, or delete it. It survives restarts until then.
  Open({{Id(known), {known.bytes(), "ann"}}}, restored);
  EXPECT_EQ(Made(one).name(), set.name());
  EXPECT_EQ(Made(one).files_received(), 1);
  ASSERT_TRUE(uploads_->Claim(Id(set)).ok());
  EXPECT_TRUE(uploads_->Delete(Id(begun)).ok());
  EXPECT_FALSE(Exists(begun));
  EXPECT_THAT(uploads_->FromBeforeRestoration(), IsEmpty());
  // Each daemon lists the folder until somebody removes it.
  EXPECT_THAT(uploads_->Unreadable(), ElementsAre("0123456789abcdef"));
}

// The rest of a removed upload would look like an unreadable upload from before a restoration, and so stay
// for ever.
TEST_F(UploadsRemovalTest, ARemovalThatIsCutOffGoesOn) {
  RenamingEnv env;
  Open({}, absl::InfinitePast(), &env);
  const v1::Upload upload = Made(sample_);
  ASSERT_TRUE(Send(sample_, upload).ok());
  ASSERT_TRUE(uploads_->Delete(Id(upload)).ok());
  ASSERT_THAT(env.renamed, testing::Contains(HasSubstr(Id(upload))));
  // The state after a daemon died during the removal.
  const std::string left = env.renamed.back();
  std::filesystem::create_directories(left + "/files");
  std::ofstream(left + "/files/a.csv") << "1,2,3";
  std::ofstream(left + "/received") << "";
  clock_.Advance(absl::Hours(1));
  Open({}, clock_.Now());
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_THAT(uploads_->Unreadable(), IsEmpty());
  EXPECT_THAT(uploads_->FromBeforeRestoration(), IsEmpty());
}

// The rest takes disk space that no list shows.
TEST_F(UploadsRemovalTest, ARemovalThatFailsIsToldOnceByEachDaemon) {
  CapturedLog log;
  remove_folder_ = [](const std::string&) { return absl::PermissionDeniedError("it is read-only"); };
  Open({});
  const v1::Upload upload = Made(sample_);
  const std::string left = uploads_->folder() + "/" + Id(upload) + ".removed";
  const auto tells =
      AllOf(StartsWith("cannot remove the rest of an upload, " + left), HasSubstr(": it is read-only;"));
  EXPECT_TRUE(uploads_->Delete(Id(upload)).ok());
  EXPECT_THAT(log.Take(), tells);
  uploads_->RemoveExpired();
  EXPECT_EQ(log.Take(), "");
  Open({});
  EXPECT_THAT(log.Take(), tells);
  EXPECT_TRUE(std::filesystem::exists(left));
  remove_folder_ = nullptr;
  Open({});
  EXPECT_EQ(log.Take(), "");
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(UploadsRemovalTest, WhatCannotBeRenamedIsRemovedAsItIs) {
  CapturedLog log;
  RenamingEnv env;
  Open({}, absl::InfinitePast(), &env);
  const v1::Upload upload = Made(sample_);
  const v1::Upload other = Made(SampleUpload::OneFile("a", "1"));
  env.fails = true;
  EXPECT_TRUE(uploads_->Delete(Id(upload)).ok());
  EXPECT_FALSE(Exists(upload));
  EXPECT_EQ(log.Take(), "");
  // If that also fails, the next daemon tries again. No upload is made of the rest.
  remove_folder_ = [](const std::string&) { return absl::PermissionDeniedError("it is read-only"); };
  env.fails = false;
  Open({}, absl::InfinitePast(), &env);
  env.fails = true;
  EXPECT_TRUE(uploads_->Delete(Id(other)).ok());
  EXPECT_THAT(log.Take(), HasSubstr("cannot remove " + uploads_->folder() + "/" + Id(other) + ","));
  EXPECT_TRUE(Exists(other));
  remove_folder_ = nullptr;
  Open({});
  EXPECT_FALSE(Exists(other));
  EXPECT_THAT(uploads_->List(), IsEmpty());
}

}  // namespace
}  // namespace tandem
