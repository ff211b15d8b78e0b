#ifndef TANDEM_SERVER_DATASETS_UPLOADS_FIXTURE_H_
#define TANDEM_SERVER_DATASETS_UPLOADS_FIXTURE_H_

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "gtest/gtest.h"
#include "server/datasets/sample_upload.h"
#include "server/datasets/uploads.h"
#include "server/store/temporary_folder.h"

namespace tandem {

// A clock that runs a function at a chosen reading.
class ClockWithAMoment : public FakeClock {
 public:
  using FakeClock::FakeClock;
  absl::Time Now() const override {
    if (--calls_ == 0) what_();
    return FakeClock::Now() + ahead_;
  }
  absl::Duration Elapsed() const override { return Now() - ahead_ - absl::UnixEpoch(); }
  // Sets the clock ahead. Not while other threads read it.
  void SetAhead(absl::Duration ahead) { ahead_ = ahead; }
  // Runs `what` at the `call`-th reading from now on, counted from 1. Not while other threads read the clock.
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

// For tests: a folder of uploads with small limits.
class UploadsFixture : public ::testing::Test {
 protected:
  static constexpr absl::Duration kExpiry = absl::Hours(24);

  UploadsFixture() { Open({}); }

  void Open(std::map<std::string, Uploads::Owned> owned, absl::Time restored = absl::InfinitePast(),
            Env* env = Env::Real()) {
    uploads_.reset();
    Uploads::Options options;
    options.folder = folder_.path() + "/uploads";
    options.most_bytes_each = most_bytes_each_;
    options.most_bytes = most_bytes_;
    options.least_free = 100;
    options.most_uploads = 3;
    options.most_uploads_each = most_uploads_each_;
    options.expiry = kExpiry;
    options.restored = restored;
    options.free_bytes = [this](const std::string&) { return free_; };
    options.remove_folder = remove_folder_;
    auto opened = Uploads::Open(std::move(options), env, &clock_, std::move(owned));
    ASSERT_TRUE(opened.ok()) << opened.status();
    uploads_ = *std::move(opened);
  }

  static std::string Id(const v1::Upload& upload) { return upload.name().substr(8); }

  // Sends `pieces` of the missing pieces; -1: all.
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
  // Returns the error for an upload of two files with this many bytes.
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
  // The limits for the next Open, as in Uploads::Options.
  int most_uploads_each_ = 20;
  int64_t most_bytes_ = 0;
  int64_t most_bytes_each_ = 1000 + 2 * kBlockBytes;
  std::function<absl::Status(const std::string&)> remove_folder_;
  // 14 bytes.
  const SampleUpload sample_{{{"a.csv", "1,2,3"}, {"b/c.csv", "4,5,6,7,8"}}};
  // Its disk space.
  static constexpr int64_t kSampleBytes = 14 + 2 * kBlockBytes;
  std::unique_ptr<Uploads> uploads_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_UPLOADS_FIXTURE_H_
