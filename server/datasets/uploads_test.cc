#include "server/datasets/uploads.h"

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "engine/base/error_reason.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/datasets/full_disk_env.h"
#include "server/datasets/sample_upload.h"
#include "server/datasets/uploads_fixture.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A disk whose next new file blocks until released, and may then fail.
class HeldEnv : public FullDiskEnv {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    {
      MutexLock lock(&mutex_);
      if (std::exchange(hold_, false)) {
        held_ = true;
        mutex_.Await(absl::Condition(&released_));
        TANDEM_RETURN_IF_ERROR(outcome_);
      }
    }
    return FullDiskEnv::CreateFile(path);
  }
  void Hold() {
    MutexLock lock(&mutex_);
    hold_ = true;
    held_ = released_ = false;
  }
  void AwaitHeld() {
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&held_));
  }
  void Release(absl::Status outcome = absl::OkStatus()) {
    MutexLock lock(&mutex_);
    outcome_ = std::move(outcome);
    released_ = true;
  }

 private:
  Mutex mutex_;
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status outcome_ ABSL_GUARDED_BY(mutex_);
};

using UploadsTest = UploadsFixture;

TEST_F(UploadsTest, TheSameFilesAreTheSameUpload) {
  const v1::Upload begun = Made(sample_);
  EXPECT_EQ(begun.files(), 2);
  EXPECT_EQ(begun.bytes(), 14);
  ASSERT_TRUE(Send(sample_, begun, 3).ok());
  v1::Upload found = Made(sample_);
  EXPECT_EQ(found.name(), begun.name());
  EXPECT_EQ(found.files_received(), 1);
  EXPECT_EQ(found.next_offset(), 4);
  EXPECT_EQ(found.bytes_received(), 9);
  // A later daemon also finds the upload.
  Open({});
  found = Made(sample_);
  EXPECT_EQ(found.name(), begun.name());
  EXPECT_EQ(found.bytes_received(), 9);
  const absl::StatusOr<v1::Upload> sent = Send(sample_, found);
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(sent->files_received(), 2);
  EXPECT_NE(Made(SampleUpload::OneFile("a.csv", "other")).name(), begun.name());
  EXPECT_EQ(uploads_->List().size(), 2);
}

TEST_F(UploadsTest, ChecksDeclarations) {
  v1::Upload wanted;
  const absl::Status status = uploads_->Create(wanted).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("upload.files"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("upload.manifest_sha256"));
  for (const std::string& id : {std::string(), std::string(".."), std::string("0123456789abcdef")}) {
    EXPECT_EQ(uploads_->Get(id).status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(uploads_->Delete(id).code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(uploads_->Begin(id).status().code(), absl::StatusCode::kNotFound);
  }
}

TEST_F(UploadsTest, SpaceIsLimited) {
  most_bytes_ = 1500 + 4 * kBlockBytes;
  Open({});
  EXPECT_EQ(GetReason(Refused(1001)), "UPLOAD_TOO_LARGE");
  // Space for other unfinished uploads is not free.
  const SampleUpload large({{"x", std::string(900, 'x')}, {"y", ""}});
  const v1::Upload first = Made(large);
  EXPECT_EQ(GetReason(Refused(601)), "UPLOAD_SPACE_EXHAUSTED");
  free_ = 900 + 500 + 4 * kBlockBytes + 100 - 1;
  EXPECT_EQ(GetReason(Refused(500)), "DISK_FULL");
  free_ = int64_t{1} << 40;
  Made(SampleUpload::OneFile("1", "1"));
  Made(SampleUpload::OneFile("2", "2"));
  EXPECT_EQ(GetReason(Refused(1)), "TOO_MANY_UPLOADS");
  for (const v1::Upload& upload : uploads_->List()) {
    if (upload.name() == first.name()) continue;
    ASSERT_TRUE(uploads_->Delete(Id(upload)).ok());
  }
  // Files of data sets also count, and still count after a restart.
  ASSERT_TRUE(Send(large, first).ok());
  ASSERT_TRUE(uploads_->Claim(Id(first)).ok());
  EXPECT_EQ(GetReason(Refused(601)), "UPLOAD_SPACE_EXHAUSTED");
  Open({{Id(first), {900, "ann"}}});
  EXPECT_EQ(GetReason(Refused(601)), "UPLOAD_SPACE_EXHAUSTED");
  uploads_->Remove(Id(first));
  EXPECT_FALSE(Exists(first));
  Made(SampleUpload::OneFile("x", std::string(601, 'x')));
}

// A sum that overflows would be below every limit.
TEST_F(UploadsTest, MoreBytesThanAnyDiskHasAreTooMany) {
  for (const int64_t bytes :
       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max() - 4096}) {
    v1::Upload wanted = sample_.Declaration();
    wanted.set_bytes(bytes);
    EXPECT_EQ(GetReason(uploads_->Create(wanted).status()), "UPLOAD_TOO_LARGE") << bytes;
  }
  EXPECT_EQ(uploads_->used_bytes(), 0);
}

TEST_F(UploadsTest, ALimitOfZeroIsNone) {
  most_bytes_each_ = 0;
  Open({});
  free_ = int64_t{1} << 60;
  v1::Upload wanted = sample_.Declaration();
  wanted.set_bytes(int64_t{1} << 50);
  EXPECT_TRUE(uploads_->Create(wanted).ok());
  // The disk still limits the upload, and no number overflows.
  wanted.set_user("ann");
  for (const int64_t bytes : {int64_t{1} << 61, std::numeric_limits<int64_t>::max()}) {
    wanted.set_bytes(bytes);
    EXPECT_EQ(GetReason(uploads_->Create(wanted).status()), "DISK_FULL") << bytes;
  }
}

// A user with a quota of bytes cannot fill the disk with empty files.
TEST_F(UploadsTest, SmallFilesCountAsBlocks) {
  v1::Upload wanted = sample_.Declaration();
  wanted.set_bytes(0);
  wanted.set_files(3);
  const absl::Status refused = uploads_->Create(wanted).status();
  EXPECT_EQ(GetReason(refused), "UPLOAD_TOO_LARGE");
  EXPECT_THAT(refused.message(), HasSubstr("is 0, which take 12.0 KiB in 3 files"));
  wanted.set_files(2);
  wanted.set_user("ann");
  ASSERT_TRUE(uploads_->Create(wanted).ok());
  EXPECT_EQ(uploads_->BytesOf("ann"), 2 * kBlockBytes);
}

TEST_F(UploadsTest, ADiskThatSmallFilesFillIsNoticed) {
  std::map<std::string, std::string> files;
  const std::string deep = "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/";
  for (int i = 0; i < 1000; ++i) files[absl::StrCat(deep, i)] = "";
  const SampleUpload many(std::move(files));
  Uploads::Options options;
  options.folder = folder_.path() + "/many";
  options.least_free = 100;
  int asked = 0;
  // The first look accepts the declaration. Then the disk fills up.
  options.free_bytes = [&](const std::string&) { return asked++ == 0 ? int64_t{1} << 40 : 99; };
  auto opened = Uploads::Open(std::move(options), Env::Real(), &clock_, {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  const absl::StatusOr<v1::Upload> upload = (*opened)->Create(many.Declaration());
  ASSERT_TRUE(upload.ok()) << upload.status();
  auto call = (*opened)->Begin(Id(*upload));
  ASSERT_TRUE(call.ok());
  absl::Status status;
  for (const v1::UploadFilesRequest& piece : many.Pieces(*upload)) {
    status = (*call)->Take(piece);
    if (!status.ok()) break;
  }
  EXPECT_EQ(GetReason(status), "DISK_FULL") << status;
}

// A user with many uploads does not block other users.
TEST_F(UploadsTest, EachUserHasPlacesOfTheirOwn) {
  most_uploads_each_ = 2;
  Open({});
  const auto create = [this](const std::string& user, const std::string& content) {
    v1::Upload wanted = SampleUpload::OneFile("x", content).Declaration();
    wanted.set_user(user);
    return uploads_->Create(wanted).status();
  };
  EXPECT_TRUE(create("ann", "1").ok());
  EXPECT_TRUE(create("ann", "2").ok());
  const absl::Status refused = create("ann", "3");
  EXPECT_EQ(GetReason(refused), "TOO_MANY_UPLOADS");
  EXPECT_THAT(refused.message(), HasSubstr("\"ann\" has 2 unfinished uploads"));
  EXPECT_TRUE(create("bob", "3").ok());
  EXPECT_EQ(GetReason(create("eve", "4")), "TOO_MANY_UPLOADS");
  EXPECT_TRUE(create("admin", "4").ok());
}

TEST_F(UploadsTest, BytesCountOnceOnTheirWayToASet) {
  v1::Upload wanted = sample_.Declaration();
  wanted.set_user("ann");
  absl::StatusOr<v1::Upload> upload = uploads_->Create(wanted);
  ASSERT_TRUE(upload.ok()) << upload.status();
  EXPECT_EQ(uploads_->BytesOf("ann"), kSampleBytes);
  ASSERT_TRUE(Send(sample_, *upload).ok());
  ASSERT_TRUE(uploads_->Claim(Id(*upload)).ok());
  EXPECT_EQ(uploads_->BytesOf("ann"), kSampleBytes);
  EXPECT_EQ(uploads_->used_bytes(), kSampleBytes);
  uploads_->GiveBack(Id(*upload));
  EXPECT_EQ(uploads_->BytesOf("ann"), kSampleBytes);
  ASSERT_TRUE(uploads_->Claim(Id(*upload)).ok());
  // After a crash, the next daemon finds no set that owns the upload.
  Open({});
  EXPECT_EQ(uploads_->BytesOf("ann"), kSampleBytes);
  ASSERT_TRUE(uploads_->Claim(Id(*upload)).ok());
  // The administrator created the set and so owns the files.
  uploads_->Keep(Id(*upload), "admin");
  EXPECT_EQ(uploads_->BytesOf("ann"), 0);
  EXPECT_EQ(uploads_->BytesOf("admin"), kSampleBytes);
  EXPECT_EQ(uploads_->used_bytes(), kSampleBytes);
  // Or finds a set that owns the upload.
  Open({{Id(*upload), {14, "admin"}}});
  EXPECT_EQ(uploads_->BytesOf("ann"), 0);
  EXPECT_EQ(uploads_->BytesOf("admin"), kSampleBytes);
  uploads_->Remove(Id(*upload));
  EXPECT_EQ(uploads_->BytesOf("admin"), 0);
  EXPECT_EQ(uploads_->used_bytes(), 0);
}

TEST_F(UploadsTest, OneThatIsMadeSlowlyHoldsUpNobodyAndCounts) {
  HeldEnv env;
  Open({}, absl::InfinitePast(), &env);
  v1::Upload wanted = sample_.Declaration();
  wanted.set_user("ann");
  env.Hold();
  absl::StatusOr<v1::Upload> slow;
  std::thread ann([&] { slow = uploads_->Create(wanted); });
  env.AwaitHeld();
  EXPECT_THAT(uploads_->List(), IsEmpty());
  // RemoveExpired does not block on the creation either.
  clock_.Advance(kExpiry * 2);
  // Another upload of the user counts the upload in creation.
  v1::Upload next = SampleUpload::OneFile("a", "12").Declaration();
  next.set_user("ann");
  int64_t used = -1;
  const absl::Status refused = absl::ResourceExhaustedError("enough");
  EXPECT_EQ(uploads_
                ->Create(next,
                         [&](int64_t bytes) {
                           used = bytes;
                           return refused;
                         })
                .status(),
            refused);
  EXPECT_EQ(used, kSampleBytes);
  EXPECT_EQ(uploads_->BytesOf("ann"), kSampleBytes);
  next.set_user("bob");
  EXPECT_TRUE(uploads_
                  ->Create(next,
                           [](int64_t bytes) {
                             EXPECT_EQ(bytes, 0);
                             return absl::OkStatus();
                           })
                  .ok());
  EXPECT_EQ(uploads_->BytesOf("bob"), 2 + kBlockBytes);
  EXPECT_EQ(uploads_->List().size(), 1);
  env.Release();
  ann.join();
  ASSERT_TRUE(slow.ok()) << slow.status();
  EXPECT_EQ(uploads_->List().size(), 2);
  // Continuing an upload adds no bytes.
  EXPECT_EQ(uploads_->Create(wanted, [&](int64_t) { return refused; })->name(), slow->name());
}

// The upload vanishes at each moment of a call for the same files.
TEST_F(UploadsTest, OneThatVanishesWhileItIsLookedAtIsMadeAnew) {
  using Vanish = std::function<void(const std::string& id)>;
  const Vanish is_deleted = [&](const std::string& id) { EXPECT_TRUE(uploads_->Delete(id).ok()); };
  const Vanish becomes_a_set = [&](const std::string& id) { EXPECT_TRUE(uploads_->Claim(id).ok()); };
  for (const Vanish& vanish : {is_deleted, becomes_a_set}) {
    // At the later moments, the call holds the lock of the found upload.
    for (int moment = 1; moment <= 4; ++moment) {
      const v1::Upload found = Made(sample_);
      ASSERT_TRUE(Send(sample_, found).ok());
      bool has_vanished = false;
      clock_.DoAt(moment, [&] {
        has_vanished = true;
        vanish(Id(found));
      });
      const absl::StatusOr<v1::Upload> again = uploads_->Create(sample_.Declaration());
      clock_.DoNothing();
      ASSERT_TRUE(again.ok()) << again.status() << " at " << moment;
      EXPECT_EQ(again->name() != found.name(), has_vanished) << moment;
      EXPECT_TRUE(Exists(*again));
      uploads_->Remove(Id(found));
      if (has_vanished) {
        EXPECT_TRUE(uploads_->Delete(Id(*again)).ok());
      }
      Open({});
    }
  }
}

TEST_F(UploadsTest, WhoFindsOneThatCannotBeMadeMakesAnother) {
  HeldEnv env;
  Open({}, absl::InfinitePast(), &env);
  // Only the lock knows if a call waits for it, so try often.
  for (int round = 0; round < 20; ++round) {
    env.Hold();
    absl::StatusOr<v1::Upload> first, second;
    std::thread ann([&] { first = uploads_->Create(sample_.Declaration()); });
    env.AwaitHeld();
    absl::Notification begun;
    clock_.DoAt(1, [&] { begun.Notify(); });
    std::thread bob([&] { second = uploads_->Create(sample_.Declaration()); });
    begun.WaitForNotification();
    env.Release(absl::ResourceExhaustedError("no space left on device"));
    ann.join();
    bob.join();
    EXPECT_EQ(first.status().code(), absl::StatusCode::kResourceExhausted) << first.status();
    ASSERT_TRUE(second.ok()) << second.status() << " in round " << round;
    EXPECT_TRUE(Exists(*second));
    ASSERT_TRUE(uploads_->Delete(Id(*second)).ok());
  }
}

TEST_F(UploadsTest, OneThatCannotBeMadeLeavesNothing) {
  FullDiskEnv env;
  Open({}, absl::InfinitePast(), &env);
  env.left = 10;
  EXPECT_EQ(uploads_->Create(sample_.Declaration()).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(uploads_->used_bytes(), 0);
  EXPECT_THAT(uploads_->List(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() + "/uploads"));
  env.left = int64_t{1} << 40;
  Made(sample_);
}

TEST_F(UploadsTest, ANewCallTakesOver) {
  const v1::Upload upload = Made(sample_);
  auto old = uploads_->Begin(Id(upload));
  ASSERT_TRUE(old.ok());
  const auto pieces = sample_.Pieces(upload);
  ASSERT_TRUE((*old)->Take(pieces[0]).ok());
  const v1::Upload found = Made(sample_);
  EXPECT_EQ(found.next_offset(), 4);
  const absl::StatusOr<v1::Upload> sent = Send(sample_, found, 1);
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(GetReason((*old)->Take(pieces[1])), "UPLOAD_TAKEN_OVER");
  EXPECT_EQ((*old)->Finish().status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Made(sample_).bytes_received(), 5);
}

TEST_F(UploadsTest, IsClaimedOnce) {
  const v1::Upload upload = Made(sample_);
  EXPECT_EQ(GetReason(uploads_->Claim(Id(upload)).status()), "UPLOAD_NOT_WHOLE");
  ASSERT_TRUE(Send(sample_, upload).ok());
  ASSERT_TRUE(uploads_->Claim(Id(upload)).ok());
  EXPECT_EQ(uploads_->Claim(Id(upload)).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(uploads_->Delete(Id(upload)).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(uploads_->List().empty());
  uploads_->GiveBack(Id(upload));
  EXPECT_EQ(uploads_->List().size(), 1);
  EXPECT_TRUE(uploads_->Delete(Id(upload)).ok());
  EXPECT_FALSE(Exists(upload));
}

TEST_F(UploadsTest, FilesOfAWholeUploadAreFound) {
  const auto refusal = [&](const std::string& id, const std::string& path) {
    const absl::Status status = uploads_->FindFile(id, path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const v1::Upload upload = Made(sample_);
  const std::string id = Id(upload);
  // The first file is whole.
  ASSERT_TRUE(Send(sample_, upload, /*pieces=*/3).ok());
  EXPECT_THAT(refusal(id, "a.csv"), HasSubstr("only 1 of the upload's 2 files have arrived"));
  ASSERT_TRUE(Send(sample_, *uploads_->Get(id)).ok());
  const absl::StatusOr<std::string> found = uploads_->FindFile(id, "b/c.csv");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, uploads_->FilesFolder(id) + "/b/c.csv");
  EXPECT_THAT(refusal(id, "b"), HasSubstr("the upload has no such file"));
  EXPECT_THAT(refusal(id, "../upload"), HasSubstr("has the part '..'"));
  EXPECT_THAT(refusal("0123456789abcdef", "a.csv"), HasSubstr("is 'uploads/0123456789abcdef/a.csv'"));
  // Each use counts.
  clock_.Advance(kExpiry - absl::Minutes(1));
  EXPECT_TRUE(uploads_->FindFile(id, "a.csv").ok());
  clock_.Advance(kExpiry - absl::Minutes(1));
  uploads_->RemoveExpired();
  EXPECT_TRUE(uploads_->FindFile(id, "a.csv").ok());
  // A data set's files are not found.
  ASSERT_TRUE(uploads_->Claim(id).ok());
  EXPECT_THAT(refusal(id, "a.csv"), HasSubstr("there is no such upload"));
}

TEST_F(UploadsTest, OtherFilesThanDeclaredAreRemoved) {
  const v1::Upload upload = Made(sample_);
  const SampleUpload other({{"a.csv", "1,2,3"}, {"b/c.csv", "4,5,6,7,9"}});
  EXPECT_EQ(Send(other, upload).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(Exists(upload));
  EXPECT_EQ(uploads_->Get(Id(upload)).status().code(), absl::StatusCode::kNotFound);
  // The upload is removed even if nobody asked for its result.
  const v1::Upload again = Made(sample_);
  EXPECT_NE(again.name(), upload.name());
  auto call = uploads_->Begin(Id(again));
  ASSERT_TRUE(call.ok());
  for (const v1::UploadFilesRequest& piece : other.Pieces(again)) ASSERT_TRUE((*call)->Take(piece).ok());
  EXPECT_EQ(uploads_->Get(Id(again)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(Made(sample_).name(), again.name());
  EXPECT_FALSE(Exists(again));
}

TEST_F(UploadsTest, WhatIsNoUploadIsLeftAlone) {
  const std::string folder = folder_.path() + "/uploads/";
  std::filesystem::create_directories(folder + "somebody's");
  std::filesystem::create_directories(folder + "somebody's.removed");
  // A creation that a crash interrupted.
  std::filesystem::create_directories(folder + "0123456789abcdef/files");
  Open({});
  EXPECT_TRUE(std::filesystem::exists(folder + "somebody's"));
  EXPECT_TRUE(std::filesystem::exists(folder + "somebody's.removed"));
  EXPECT_FALSE(std::filesystem::exists(folder + "0123456789abcdef"));
}

}  // namespace
}  // namespace tandem
