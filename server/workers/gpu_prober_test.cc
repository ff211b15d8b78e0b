#include "server/workers/gpu_prober.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::Device Gpu(int index) {
  v1::Device device;
  device.set_name(absl::StrCat("devices/gpu:", index));
  device.set_kind(v1::DEVICE_KIND_GPU);
  device.set_index(index);
  return device;
}

// The results of a prober with this shell script in place of the worker.
class Probing {
 public:
  explicit Probing(const std::string& script, absl::Duration time_limit = absl::Minutes(2),
                   std::function<absl::Status(const v1::Device&)> ask_driver = nullptr) {
    const std::string program = absl::StrCat(::testing::TempDir(), "/probe.sh");
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    chmod(program.c_str(), 0700);
    prober_.emplace(GpuProber::Options{.worker_program = program,
                                       .gpu_uuids = {"GPU-a", "GPU-b"},
                                       .time_limit = time_limit,
                                       .ask_driver = std::move(ask_driver)});
  }
  void Post(std::vector<v1::Device> devices) {
    {
      MutexLock lock(&mutex_);
      found_.clear();
      done_ = false;
    }
    prober_->Post(
        std::move(devices),
        [this](const v1::Device&, const absl::Status& status) {
          MutexLock lock(&mutex_);
          found_.push_back(status);
        },
        [this] {
          MutexLock lock(&mutex_);
          done_ = true;
        });
  }
  std::vector<absl::Status> Await() {
    MutexLock lock(&mutex_);
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&done_), absl::Minutes(2)));
    return found_;
  }
  absl::Status Of(const v1::Device& device) {
    Post({device});
    const std::vector<absl::Status> found = Await();
    return found.size() == 1 ? found[0] : absl::InternalError("not one");
  }
  GpuProber& prober() { return *prober_; }

 private:
  Mutex mutex_;
  std::vector<absl::Status> found_ ABSL_GUARDED_BY(mutex_);
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  // Destroyed before the other members.
  std::optional<GpuProber> prober_;
};

TEST(GpuProberTest, AsksTheWorkerProgramOfEachDevice) {
  // The process sees all of the daemon's GPUs, so that numbers are right.
  Probing probing(R"(test "$1 $CUDA_VISIBLE_DEVICES" = "--probe GPU-a,GPU-b" || exit 2
      test "$2" = devices/gpu:0 && exit 0
      echo "cuda: an ECC error of $2" >&2; exit 6)");
  probing.Post({Gpu(0), Gpu(1)});
  const std::vector<absl::Status> found = probing.Await();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].ok()) << found[0];
  EXPECT_EQ(found[1].code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(found[1].message()), HasSubstr("an ECC error of devices/gpu:1"));
}

TEST(GpuProberTest, AProcessThatDiesOrHangsIsAFaultOfItsDevice) {
  EXPECT_THAT(std::string(Probing("kill -SEGV $$").Of(Gpu(0)).message()), HasSubstr("signal 11"));
  const absl::Status hanging = Probing("sleep 600", absl::Milliseconds(300)).Of(Gpu(0));
  EXPECT_EQ(hanging.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(hanging.message()), HasSubstr("did not end within 300ms"));
}

TEST(GpuProberTest, WhatCannotBeAskedIsNoFault) {
  EXPECT_TRUE(Probing("echo usage >&2; exit 2").Of(Gpu(0)).ok());
  GpuProber prober({"/does/not/exist", {}, absl::Minutes(1)});
  std::vector<absl::Status> found;
  prober.Post(
      {Gpu(0)}, [&found](const v1::Device&, const absl::Status& status) { found.push_back(status); }, [] {});
  prober.Stop();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].ok() || absl::IsCancelled(found[0])) << found[0];
}

TEST(GpuProberTest, WhomItsDriverGivesUpIsNotTried) {
  Probing probing("exit 0", absl::Minutes(2), [](const v1::Device& device) {
    return device.name() == "devices/gpu:0" ? absl::OkStatus() : absl::UnknownError("the GPU is lost");
  });
  probing.Post({Gpu(0), Gpu(1)});
  const std::vector<absl::Status> found = probing.Await();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].ok()) << found[0];
  EXPECT_EQ(found[1], absl::UnavailableError("the GPU is lost"));
  EXPECT_TRUE(absl::IsCancelled(Probing("exit 0", absl::Minutes(2), [](const v1::Device&) {
                                  return absl::CancelledError("the daemon is shutting down");
                                }).Of(Gpu(0))));
}

TEST(GpuProberTest, StopsAtOnce) {
  Probing probing("sleep 600");
  probing.Post({Gpu(0), Gpu(1)});
  probing.prober().Stop();
  for (const absl::Status& status : probing.Await()) EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(absl::IsCancelled(probing.Of(Gpu(0))));
}

}  // namespace
}  // namespace tandem
