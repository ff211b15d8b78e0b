#include "server/datasets/uploads.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "engine/base/error_reason.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/datasets/full_disk_env.h"
#include "server/datasets/sample_upload.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr absl::Duration kExpiry = absl::Hours(24);

// Notes what things are renamed to, or does not rename them.
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

// Does something where it is asked for the time.
class ClockWithAMoment : public FakeClock {
 public:
  using FakeClock::FakeClock;
  absl::Time Now() const override {
    if (--calls_ == 0) what_();
    return FakeClock::Now() + ahead_;
  }
  absl::Duration Elapsed() const override { return Now() - ahead_ - absl::UnixEpoch(); }
  // Sets it, whatever time has passed; not while others ask.
  void SetAhead(absl::Duration ahead) { ahead_ = ahead; }
  // At the call of that number from now on, the first being 1; not while others ask.
  void DoAt(int call, std::function<void()> what) {
    what_ = std::move(what);
    calls_ = call;
  }
  void DoNothing() { calls_ = 0; }

 private:
  absl::Duration ahead_;
  mutable std::atomic<int> calls_ = 0;
  std::function<void()> what_;
};

// What is logged while it lives.
class CapturedLog {
 public:
  CapturedLog() : before_(spdlog::default_logger()) {
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    sink->set_pattern("%v");
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("captured", sink));
  }
  ~CapturedLog() { spdlog::set_default_logger(before_); }
  // Since this was last asked.
  std::string Take() {
    std::string text = text_.str();
    text_.str("");
    return text;
  }

 private:
  const std::shared_ptr<spdlog::logger> before_;
  std::ostringstream text_;
};

// A disk on which the next file takes as long as somebody wants, and may fail then.
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

class UploadsTest : public ::testing::Test {
 protected:
  UploadsTest() { Open({}); }

  void Open(std::map<std::string, Uploads::Owned> owned, absl::Time restored = absl::InfinitePast(),
            Env* env = Env::Real()) {
    uploads_.reset();
    Uploads::Options options;
    options.folder = folder_.path() + "/uploads";
    options.most_bytes_each = 1000;
    options.most_bytes = 1500;
    options.least_free = 100;
    options.most_uploads = 3;
    options.expiry = kExpiry;
    options.restored = restored;
    options.free_bytes = [this](const std::string&) { return free_; };
    options.remove_folder = remove_folder_;
    auto opened = Uploads::Open(std::move(options), env, &clock_, std::move(owned));
    ASSERT_TRUE(opened.ok()) << opened.status();
    uploads_ = *std::move(opened);
  }

  static std::string Id(const v1::Upload& upload) { return upload.name().substr(8); }

  // Sends so many pieces of what is missing; -1: all of them.
  absl::StatusOr<v1::Upload> Send(const SampleUpload& sample, const v1::Upload& upload, int pieces = -1) {
    auto call = uploads_->Begin(Id(upload));
    if (!call.ok()) return call.status();
    for (const v1::UploadFilesRequest& piece : sample.Pieces(upload)) {
      if (pieces-- == 0) break;
      if (absl::Status status = (*call)->Take(piece); !status.ok()) return status;
    }
    return (*call)->Finish();
  }
  v1::Upload Made(const SampleUpload& sample) {
    absl::StatusOr<v1::Upload> upload = uploads_->Create(sample.Declaration());
    EXPECT_TRUE(upload.ok()) << upload.status();
    return upload.ok() ? *upload : v1::Upload();
  }
  absl::Status Refused(int64_t bytes) {
    v1::Upload wanted = sample_.Declaration();
    wanted.set_manifest_sha256(std::string(32, 'o'));
    wanted.set_bytes(bytes);
    const absl::Status status = uploads_->Create(wanted).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    return status;
  }
  bool Exists(const v1::Upload& upload) {
    return std::filesystem::exists(folder_.path() + "/uploads/" + Id(upload));
  }

  const TemporaryFolder folder_;
  ClockWithAMoment clock_{absl::Now()};
  int64_t free_ = int64_t{1} << 40;
  // Of what is opened next.
  std::function<absl::Status(const std::string&)> remove_folder_;
  const SampleUpload sample_{{{"a.csv", "1,2,3"}, {"b/c.csv", "4,5,6,7,8"}}};
  std::unique_ptr<Uploads> uploads_;
};

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
  // A daemon that comes after finds it, too.
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
  EXPECT_EQ(GetReason(Refused(1001)), "UPLOAD_TOO_LARGE");
  // What others will need is not free.
  const SampleUpload large = SampleUpload::OneFile("x", std::string(900, 'x'));
  const v1::Upload first = Made(large);
  EXPECT_EQ(GetReason(Refused(601)), "UPLOAD_SPACE_EXHAUSTED");
  free_ = 900 + 500 + 2 * 4096 + 100 - 1;
  EXPECT_EQ(GetReason(Refused(500)), "DISK_FULL");
  free_ = int64_t{1} << 40;
  Made(SampleUpload::OneFile("1", "1"));
  Made(SampleUpload::OneFile("2", "2"));
  EXPECT_EQ(GetReason(Refused(1)), "TOO_MANY_UPLOADS");
  // Data sets' files count, also after a restart.
  ASSERT_TRUE(Send(large, first).ok());
  ASSERT_TRUE(uploads_->Claim(Id(first)).ok());
  EXPECT_EQ(GetReason(Refused(601)), "UPLOAD_SPACE_EXHAUSTED");
  Open({{Id(first), {900, "ann"}}});
  EXPECT_EQ(GetReason(Refused(601)), "UPLOAD_SPACE_EXHAUSTED");
  uploads_->Remove(Id(first));
  EXPECT_FALSE(Exists(first));
  Made(SampleUpload::OneFile("x", std::string(601, 'x')));
}

TEST_F(UploadsTest, StaleOnesExpire) {
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
  // In a daemon that comes later, too, after a while; but never what is a set's.
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

TEST_F(UploadsTest, AClockThatIsSetAheadEndsNone) {
  const v1::Upload upload = Made(sample_);
  clock_.SetAhead(kExpiry * 10);
  uploads_->RemoveExpired();
  EXPECT_TRUE(Exists(upload));
  clock_.SetAhead(-kExpiry * 10);
  clock_.Advance(kExpiry + absl::Minutes(1));
  uploads_->RemoveExpired();
  EXPECT_FALSE(Exists(upload));
}

// The rows of the sets that were made of uploads since the backup are lost: what no row knows may be a set's.
TEST_F(UploadsTest, WhatIsFromBeforeARestorationStays) {
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

  // What comes after expires as ever, and has as much room as ever.
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

  // It is registered again without being sent again, or deleted by hand; and may wait through restarts.
  Open({{Id(known), {known.bytes(), "ann"}}}, restored);
  EXPECT_EQ(Made(one).name(), set.name());
  EXPECT_EQ(Made(one).files_received(), 1);
  ASSERT_TRUE(uploads_->Claim(Id(set)).ok());
  EXPECT_TRUE(uploads_->Delete(Id(begun)).ok());
  EXPECT_FALSE(Exists(begun));
  EXPECT_THAT(uploads_->FromBeforeRestoration(), IsEmpty());
  // Each daemon knows of it, until somebody has removed it.
  EXPECT_THAT(uploads_->Unreadable(), ElementsAre("0123456789abcdef"));
}

// What is left of it would look like something from before a restoration that cannot be read, and stay for
// ever.
TEST_F(UploadsTest, ARemovalThatIsCutOffGoesOn) {
  RenamingEnv env;
  Open({}, absl::InfinitePast(), &env);
  const v1::Upload upload = Made(sample_);
  ASSERT_TRUE(Send(sample_, upload).ok());
  ASSERT_TRUE(uploads_->Delete(Id(upload)).ok());
  ASSERT_THAT(env.renamed, testing::Contains(HasSubstr(Id(upload))));
  // As where the daemon died in the middle of it.
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

// It takes of the disk what nobody sees.
TEST_F(UploadsTest, ARemovalThatFailsIsToldOnceByEachDaemon) {
  CapturedLog log;
  remove_folder_ = [](const std::string&) { return absl::PermissionDeniedError("it is read-only"); };
  Open({});
  const v1::Upload upload = Made(sample_);
  const std::string left = uploads_->folder() + "/" + Id(upload) + ".removed";
  const auto tells =
      AllOf(StartsWith("cannot remove " + left + ", what is left"), HasSubstr(": it is read-only;"));
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

TEST_F(UploadsTest, WhatCannotBeRenamedIsRemovedAsItIs) {
  CapturedLog log;
  RenamingEnv env;
  Open({}, absl::InfinitePast(), &env);
  const v1::Upload upload = Made(sample_);
  const v1::Upload other = Made(SampleUpload::OneFile("a", "1"));
  env.fails = true;
  EXPECT_TRUE(uploads_->Delete(Id(upload)).ok());
  EXPECT_FALSE(Exists(upload));
  EXPECT_EQ(log.Take(), "");
  // Or, if that fails too, by the next daemon; no upload is made of what is left.
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

TEST_F(UploadsTest, BytesCountOnceOnTheirWayToASet) {
  v1::Upload wanted = sample_.Declaration();
  wanted.set_user("ann");
  absl::StatusOr<v1::Upload> upload = uploads_->Create(wanted);
  ASSERT_TRUE(upload.ok()) << upload.status();
  EXPECT_EQ(uploads_->BytesOf("ann"), 14);
  ASSERT_TRUE(Send(sample_, *upload).ok());
  ASSERT_TRUE(uploads_->Claim(Id(*upload)).ok());
  EXPECT_EQ(uploads_->BytesOf("ann"), 14);
  EXPECT_EQ(uploads_->used_bytes(), 14);
  uploads_->GiveBack(Id(*upload));
  EXPECT_EQ(uploads_->BytesOf("ann"), 14);
  ASSERT_TRUE(uploads_->Claim(Id(*upload)).ok());
  // A daemon that comes after a crash finds no set of it.
  Open({});
  EXPECT_EQ(uploads_->BytesOf("ann"), 14);
  ASSERT_TRUE(uploads_->Claim(Id(*upload)).ok());
  // The set is the administrator's, who made it.
  uploads_->Keep(Id(*upload), "admin");
  EXPECT_EQ(uploads_->BytesOf("ann"), 0);
  EXPECT_EQ(uploads_->BytesOf("admin"), 14);
  EXPECT_EQ(uploads_->used_bytes(), 14);
  // Or one of it.
  Open({{Id(*upload), {14, "admin"}}});
  EXPECT_EQ(uploads_->BytesOf("ann"), 0);
  EXPECT_EQ(uploads_->BytesOf("admin"), 14);
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
  // Nor does a look for expired ones wait for it.
  clock_.Advance(kExpiry * 2);
  // Another upload of the user's counts it.
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
  EXPECT_EQ(used, 14);
  EXPECT_EQ(uploads_->BytesOf("ann"), 14);
  next.set_user("bob");
  EXPECT_TRUE(uploads_
                  ->Create(next,
                           [](int64_t bytes) {
                             EXPECT_EQ(bytes, 0);
                             return absl::OkStatus();
                           })
                  .ok());
  EXPECT_EQ(uploads_->BytesOf("bob"), 2);
  EXPECT_EQ(uploads_->List().size(), 1);
  env.Release();
  ann.join();
  ASSERT_TRUE(slow.ok()) << slow.status();
  EXPECT_EQ(uploads_->List().size(), 2);
  // Who goes on with it adds nothing.
  EXPECT_EQ(uploads_->Create(wanted, [&](int64_t) { return refused; })->name(), slow->name());
}

// Of the same files, at any moment of the call.
TEST_F(UploadsTest, OneThatVanishesWhileItIsLookedAtIsMadeAnew) {
  using Vanish = std::function<void(const std::string& id)>;
  const Vanish is_deleted = [&](const std::string& id) { EXPECT_TRUE(uploads_->Delete(id).ok()); };
  const Vanish becomes_a_set = [&](const std::string& id) { EXPECT_TRUE(uploads_->Claim(id).ok()); };
  for (const Vanish& vanish : {is_deleted, becomes_a_set}) {
    // Behind them it looks under the lock of what it has found.
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
  // Only the lock knows when somebody waits for it.
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

TEST_F(UploadsTest, OtherFilesThanDeclaredAreRemoved) {
  const v1::Upload upload = Made(sample_);
  const SampleUpload other({{"a.csv", "1,2,3"}, {"b/c.csv", "4,5,6,7,9"}});
  EXPECT_EQ(Send(other, upload).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(Exists(upload));
  EXPECT_EQ(uploads_->Get(Id(upload)).status().code(), absl::StatusCode::kNotFound);
  // Also where nobody asked how it ended.
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
  // Cut off in the making.
  std::filesystem::create_directories(folder + "0123456789abcdef/files");
  Open({});
  EXPECT_TRUE(std::filesystem::exists(folder + "somebody's"));
  EXPECT_TRUE(std::filesystem::exists(folder + "somebody's.removed"));
  EXPECT_FALSE(std::filesystem::exists(folder + "0123456789abcdef"));
}

}  // namespace
}  // namespace tandem
