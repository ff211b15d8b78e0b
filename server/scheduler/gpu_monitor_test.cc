#include "server/scheduler/gpu_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "engine/base/mutex.h"
#include "server/scheduler/gpu_error_watch.h"
#include "server/scheduler/nvml.h"
#include "server/scheduler/xid.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kDriver[] = "driver 580.95.05\ncuda 13000\n";
constexpr char kH200[] =
    "gpu uuid=GPU-aa;name=NVIDIA H200;cc=9.0;pci=00000000:3B:00.0;memory=150754820096;used=600;"
    "utilization=37;temperature=41;power=126500;power limit=700000;corrected=3;uncorrected=0\n";
constexpr char kA100[] = "gpu uuid=GPU-bb;name=NVIDIA A100;cc=8.0;memory=42949672960;used=5\n";

// Uses //server/scheduler/testing:libfake-nvml.so.
class GpuMonitorTest : public ::testing::Test {
 protected:
  GpuMonitorTest() : file_(::testing::TempDir() + "/fake_nvml") {
    setenv("TANDEM_FAKE_NVML", file_.c_str(), /*overwrite=*/1);
    options_.nvml_path =
        absl::StrCat(getenv("TEST_SRCDIR"), "/tandem/server/scheduler/testing/libfake-nvml.so");
    options_.cuda_major = 13;
  }

  // Written as a whole, because other threads read it meanwhile.
  void Machine(const std::string& text) const {
    std::ofstream(file_ + ".new") << text;
    ASSERT_EQ(std::rename((file_ + ".new").c_str(), file_.c_str()), 0);
  }
  static std::vector<std::string> Uuids(const GpuMonitor& monitor) {
    std::vector<std::string> uuids;
    for (const HostGpu& gpu : monitor.gpus()) uuids.push_back(gpu.status.uuid());
    return uuids;
  }
  // Returns the note of a machine without usable GPUs: "info: ..." or "warning: ...".
  std::string WhyNone(const std::string& machine) const {
    Machine(machine);
    const auto monitor = GpuMonitor::Open(options_);
    EXPECT_THAT(Uuids(*monitor), IsEmpty());
    return absl::StrJoin(monitor->notes(), "\n", [](std::string* out, const GpuMonitor::Note& note) {
      absl::StrAppend(out, note.is_warning ? "warning: " : "info: ", note.text);
    });
  }

  const std::string file_;
  GpuMonitor::Options options_;
};

TEST_F(GpuMonitorTest, SaysWhatTheDriverSays) {
  Machine(absl::StrCat(kDriver, kH200, kA100));
  const auto monitor = GpuMonitor::Open(options_);
  EXPECT_THAT(monitor->notes(), IsEmpty());
  ASSERT_THAT(Uuids(*monitor), ElementsAre("GPU-aa", "GPU-bb"));
  const HostGpu& h200 = monitor->gpus()[0];
  EXPECT_EQ(h200.model, "NVIDIA H200");
  v1::GpuStatus status = h200.status;
  EXPECT_EQ(status.pci_bus_id(), "00000000:3B:00.0");
  EXPECT_EQ(status.compute_capability(), "9.0");
  EXPECT_EQ(status.driver_version(), "580.95.05");
  EXPECT_EQ(status.total_memory_bytes(), 150754820096);
  EXPECT_FALSE(status.has_temperature_celsius());

  ASSERT_TRUE(monitor->Refresh(&status).ok());
  EXPECT_EQ(status.used_memory_bytes(), 600);
  EXPECT_EQ(status.utilization_percent(), 37);
  EXPECT_EQ(status.temperature_celsius(), 41);
  EXPECT_EQ(status.power_watts(), 126.5);
  EXPECT_EQ(status.power_limit_watts(), 700);
  EXPECT_EQ(status.ecc_corrected_errors(), 3);
  EXPECT_TRUE(status.has_ecc_uncorrected_errors());
  EXPECT_EQ(status.ecc_uncorrected_errors(), 0);

  v1::GpuStatus other = monitor->gpus()[1].status;
  ASSERT_TRUE(monitor->Refresh(&other).ok());
  EXPECT_EQ(other.used_memory_bytes(), 5);
  EXPECT_FALSE(other.has_utilization_percent());
  EXPECT_FALSE(other.has_ecc_corrected_errors());
}

TEST_F(GpuMonitorTest, AGpuThatAnswersNoMoreIsTold) {
  Machine(absl::StrCat(kDriver, kH200));
  const auto monitor = GpuMonitor::Open(options_);
  v1::GpuStatus status = monitor->gpus().at(0).status;
  ASSERT_TRUE(monitor->Refresh(&status).ok());
  Machine(absl::StrCat(kDriver, "gpu uuid=GPU-aa;lost=1\n"));
  const absl::Status lost = monitor->Refresh(&status);
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(lost.message()), HasSubstr("GPU is lost"));
  EXPECT_FALSE(status.has_temperature_celsius()) << "what it was is not what it is";
  status.set_uuid("GPU-cc");
  EXPECT_FALSE(monitor->Refresh(&status).ok());
}

TEST_F(GpuMonitorTest, TheEnvironmentChoosesAndOrders) {
  Machine(absl::StrCat(kDriver, kH200, kA100));
  options_.visible_devices = "1,0";
  EXPECT_THAT(Uuids(*GpuMonitor::Open(options_)), ElementsAre("GPU-bb", "GPU-aa"));
  options_.visible_devices = "GPU-b";
  EXPECT_THAT(Uuids(*GpuMonitor::Open(options_)), ElementsAre("GPU-bb"));
  options_.visible_devices = "";
  EXPECT_THAT(WhyNone(absl::StrCat(kDriver, kH200, kA100)),
              AllOf(HasSubstr("info: CUDA_VISIBLE_DEVICES"), HasSubstr("0 of 2 GPUs")));
}

TEST_F(GpuMonitorTest, ADriverThatSaysNoVersionOfCudaIsTrusted) {
  Machine(kA100);
  EXPECT_THAT(Uuids(*GpuMonitor::Open(options_)), ElementsAre("GPU-bb"));
}

// Returns "path nvlinks peer" of each link of a GPU.
std::vector<std::string> LinksOf(const HostGpu& gpu) {
  std::vector<std::string> links;
  for (const v1::GpuLink& link : gpu.status.links()) {
    links.push_back(absl::StrCat(link.device(), " ", v1::GpuLink::Path_Name(link.path()), " ", link.nvlinks(),
                                 link.peer_access() ? " peer" : ""));
  }
  return links;
}

TEST_F(GpuMonitorTest, SaysHowGpusAreConnected) {
  constexpr char kRest[] = ";name=NVIDIA H100;cc=9.0;memory=1";
  const std::string machine = absl::StrCat(
      kDriver, "gpu uuid=GPU-0", kRest, ";pci=00000000:0A:00.0;links=00000000:0b:00.0,down,",
      "00000000:0B:00.0\n", "gpu uuid=GPU-1", kRest, ";pci=00000000:0B:00.0;links=00000000:0A:00.0\n",
      "gpu uuid=GPU-2", kRest, ";pci=00000000:1A:00.0;links=switch,switch,switch\n", "gpu uuid=GPU-3", kRest,
      ";pci=00000000:1B:00.0;links=switch,down,switch\n",
      "pair 0 1 path=10;peer=0\npair 0 2 path=50;peer=4\npair 0 3 path=30\npair 1 2 path=40\n",
      "pair 1 3 path=20\npair 2 3 path=0;peer=0\n");
  Machine(machine);
  {
    const auto monitor = GpuMonitor::Open(options_);
    ASSERT_EQ(monitor->gpus().size(), 4u);
    EXPECT_THAT(LinksOf(monitor->gpus()[0]),
                ElementsAre("devices/gpu:1 PATH_PCIE_SWITCH 2 peer", "devices/gpu:2 PATH_SYSTEM 0",
                            "devices/gpu:3 PATH_HOST_BRIDGE 0"));
    EXPECT_THAT(LinksOf(monitor->gpus()[1]),
                ElementsAre("devices/gpu:0 PATH_PCIE_SWITCH 1 peer", "devices/gpu:2 PATH_NUMA_NODE 0",
                            "devices/gpu:3 PATH_PCIE_SWITCHES 0"));
    EXPECT_THAT(LinksOf(monitor->gpus()[2]),
                ElementsAre("devices/gpu:0 PATH_SYSTEM 0", "devices/gpu:1 PATH_NUMA_NODE 0",
                            "devices/gpu:3 PATH_SAME_BOARD 3 peer"));
    EXPECT_THAT(LinksOf(monitor->gpus()[3]),
                ElementsAre("devices/gpu:0 PATH_HOST_BRIDGE 0", "devices/gpu:1 PATH_PCIE_SWITCHES 0",
                            "devices/gpu:2 PATH_SAME_BOARD 2 peer"));
  }
  // The environment gives the numbers.
  options_.visible_devices = "3,2";
  EXPECT_THAT(LinksOf(GpuMonitor::Open(options_)->gpus().at(1)),
              ElementsAre("devices/gpu:0 PATH_SAME_BOARD 3 peer"));
  options_.visible_devices.reset();
  options_.nvml_path =
      absl::StrCat(getenv("TEST_SRCDIR"), "/tandem/server/scheduler/testing/libfake-old-nvml.so");
  EXPECT_THAT(LinksOf(GpuMonitor::Open(options_)->gpus().at(0)),
              ElementsAre("devices/gpu:1 PATH_UNSPECIFIED 0", "devices/gpu:2 PATH_UNSPECIFIED 0",
                          "devices/gpu:3 PATH_UNSPECIFIED 0"));
}

// Records a monitor's errors.
class Errors {
 public:
  explicit Errors(GpuMonitor* monitor) : monitor_(monitor) {
    monitor->WatchErrors([this](const GpuMonitor::Error& error) {
      MutexLock lock(&mutex_);
      errors_.push_back(error);
    });
  }
  ~Errors() { monitor_->StopWatching(); }
  // Returns "uuid xid" and the kind of each error, as soon as `count` have arrived.
  std::vector<std::string> Await(size_t count) {
    MutexLock lock(&mutex_);
    const auto all_there = [this, count]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return errors_.size() >= count; };
    mutex_.AwaitWithTimeout(absl::Condition(&all_there), absl::Minutes(1));
    std::vector<std::string> texts;
    for (const GpuMonitor::Error& one : errors_) {
      texts.push_back(absl::StrCat(one.uuid, " ", one.error.xid(), one.is_of_hardware ? " hardware" : ""));
    }
    return texts;
  }

 private:
  GpuMonitor* const monitor_;
  Mutex mutex_;
  std::vector<GpuMonitor::Error> errors_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(GpuMonitorTest, TellsOfErrors) {
  const std::string machine =
      absl::StrCat(kDriver, "gpu uuid=GPU-0;name=NVIDIA H100;cc=9.0;memory=1;used=0;events=1\n",
                   "gpu uuid=GPU-1;name=NVIDIA H100;cc=9.0;memory=1;used=0;events=1\n");
  Machine(machine);
  const auto monitor = GpuMonitor::Open(options_);
  v1::GpuStatus status = monitor->gpus().at(1).status;
  {
    Errors errors(monitor.get());
    ASSERT_TRUE(monitor->Refresh(&status).ok());
    EXPECT_FALSE(status.has_last_error());
    Machine(absl::StrCat(machine, "xid 1 13 a\nxid 0 94 a\n"));
    EXPECT_THAT(errors.Await(2), ElementsAre("GPU-1 13", "GPU-0 94 hardware"));
    ASSERT_TRUE(monitor->Refresh(&status).ok());
    EXPECT_EQ(status.last_error().xid(), 13);
    EXPECT_THAT(status.last_error().message(), HasSubstr("beyond a tensor"));
    EXPECT_GT(status.last_error().time().seconds(), 0);
    Machine(absl::StrCat(machine, "xid 1 13 a\nxid 0 94 a\nxid 1 4711 b\n"));
    EXPECT_EQ(errors.Await(3).back(), "GPU-1 4711");
    ASSERT_TRUE(monitor->Refresh(&status).ok());
    EXPECT_THAT(status.last_error().message(), HasSubstr("XID"));
    // A lost GPU reports nothing.
    Machine(absl::StrCat(kDriver, "gpu uuid=GPU-0;lost=1\n", "gpu uuid=GPU-1;memory=1;used=0;events=1\n"));
    EXPECT_EQ(errors.Await(4).back(), "GPU-0 79 hardware");
  }
  // Nobody listens.
  EXPECT_TRUE(monitor->Refresh(&status).ok());
}

// A watch that cannot register a GPU for a moment must not ignore its errors for months.
TEST_F(GpuMonitorTest, AnErrorOfTheDriverThatPassesEndsNothing) {
  const std::string good = "gpu uuid=GPU-0;name=NVIDIA H100;cc=9.0;memory=1;used=0;events=1";
  const std::string silent = "gpu uuid=GPU-1;name=NVIDIA H100;cc=9.0;memory=1;used=0";
  for (const bool alone : {true, false}) {
    const std::string other = absl::StrCat("\n", alone ? silent : absl::StrCat(silent, ";events=1"), "\n");
    Machine(absl::StrCat(kDriver, good, ";refuses=999", other));
    const auto nvml = Nvml::Load(options_.nvml_path);
    ASSERT_TRUE(nvml.ok()) << nvml.status();
    std::vector<NvmlHandle> handles;
    for (int i = 0; i < 2; ++i) handles.push_back((*nvml)->Describe(i)->handle);
    Mutex mutex;
    bool heard = false;
    GpuErrorWatch::Options options;
    options.wait = absl::Milliseconds(5);
    options.retry = absl::Milliseconds(20);
    GpuErrorWatch watch(
        nvml->get(), handles,
        [&](int gpu, int64_t xid) {
          MutexLock lock(&mutex);
          heard = heard || (gpu == 0 && xid == 94);
        },
        options);
    absl::SleepFor(absl::Milliseconds(100));
    Machine(absl::StrCat(kDriver, good, other, "xid 0 94 passing", alone ? "-alone" : "", "\n"));
    MutexLock lock(&mutex);
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&heard), absl::Seconds(30))) << alone;
  }
}

TEST_F(GpuMonitorTest, ADriverThatReportsNoErrorsIsNotListenedTo) {
  Machine(absl::StrCat(kDriver, kH200, "xid 0 79 c\n"));
  for (const char* library : {"libfake-nvml.so", "libfake-old-nvml.so"}) {
    options_.nvml_path = absl::StrCat(getenv("TEST_SRCDIR"), "/tandem/server/scheduler/testing/", library);
    const auto monitor = GpuMonitor::Open(options_);
    ASSERT_EQ(monitor->gpus().size(), 1u);
    Errors errors(monitor.get());
    monitor->StopWatching();
    EXPECT_THAT(errors.Await(0), IsEmpty());
  }
}

// A failure may be temporary, so the driver is asked again.
TEST_F(GpuMonitorTest, ADriverThatFailsForATimeIsListenedToAgain) {
  constexpr char kGpu[] = "gpu uuid=GPU-0;name=NVIDIA H100;cc=9.0;memory=1;used=0;events=1\n";
  constexpr char kRefusing[] = "gpu uuid=GPU-0;name=NVIDIA H100;cc=9.0;memory=1;used=0;refuses=999\n";
  int xid = 100;
  for (const std::string& failing :
       {absl::StrCat(kDriver, "events 999\n", kGpu), absl::StrCat(kDriver, kRefusing)}) {
    SCOPED_TRACE(failing);
    Machine(failing);
    const absl::StatusOr<std::unique_ptr<Nvml>> nvml = Nvml::Load(options_.nvml_path);
    ASSERT_TRUE(nvml.ok()) << nvml.status();
    const absl::StatusOr<Nvml::Gpu> gpu = (*nvml)->Describe(0);
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    EXPECT_EQ((*nvml)->ListenForErrors({gpu->handle}).status().code(), absl::StatusCode::kUnavailable);
    Mutex mutex;
    int64_t heard = 0;
    const GpuErrorWatch watch(nvml->get(), {gpu->handle},
                              [&](int, int64_t number) {
                                MutexLock lock(&mutex);
                                heard = number;
                              },
                              {.wait = absl::Milliseconds(20), .retry = absl::Milliseconds(20)});
    absl::SleepFor(absl::Milliseconds(100));  // The driver has failed a few times.
    Machine(absl::StrCat(kDriver, kGpu, "xid 0 ", ++xid, " d\n"));
    const auto is_heard = [&] { return heard == xid; };
    MutexLock lock(&mutex);
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&is_heard), absl::Minutes(1)));
  }
}

TEST_F(GpuMonitorTest, GpusThatCannotBeUsedAreLeftOut) {
  Machine(absl::StrCat(kDriver, "gpu uuid=GPU-1;name=NVIDIA V100;cc=7.0;memory=1\n",
                       "gpu uuid=GPU-2;name=NVIDIA H100;cc=9.0;memory=1;mig=1\n",
                       "gpu uuid=GPU-3;name=NVIDIA H100;cc=9.0;memory=1;mode=2\n", "gpu uuid=GPU-4;lost=1\n",
                       kA100));
  const auto monitor = GpuMonitor::Open(options_);
  EXPECT_THAT(Uuids(*monitor), ElementsAre("GPU-bb"));
  std::vector<std::string> notes;
  for (const GpuMonitor::Note& note : monitor->notes()) {
    EXPECT_TRUE(note.is_warning);
    notes.push_back(note.text);
  }
  EXPECT_THAT(notes, ElementsAre(AllOf(HasSubstr("GPU 3"), HasSubstr("lost")),
                                 AllOf(HasSubstr("GPU 0 (NVIDIA V100)"), HasSubstr("7.0")),
                                 AllOf(HasSubstr("GPU 1"), HasSubstr("MIG")),
                                 AllOf(HasSubstr("GPU 2"), HasSubstr("prohibited"))));
}

TEST_F(GpuMonitorTest, NoGpuIsNoErrorAndABrokenDriverAWarning) {
  EXPECT_THAT(WhyNone(kDriver), HasSubstr("info: no GPUs"));
  EXPECT_THAT(WhyNone("init 9\n"), AllOf(HasSubstr("info: no GPUs"), HasSubstr("Driver Not Loaded")));
  EXPECT_THAT(WhyNone("init 18\n"), AllOf(HasSubstr("warning: "), HasSubstr("restart the machine")));
  EXPECT_THAT(WhyNone("init 999\n"), AllOf(HasSubstr("warning: "), HasSubstr("nvidia-smi")));
  EXPECT_THAT(WhyNone(absl::StrCat("driver 550.54.14\ncuda 12040\n", kH200)),
              AllOf(HasSubstr("warning: 1 GPU not used"), HasSubstr("550.54.14"), HasSubstr("up to 12.4"),
                    HasSubstr("CUDA 13")));
  options_.cuda_major = 0;
  EXPECT_THAT(WhyNone(absl::StrCat(kDriver, kH200)),
              AllOf(HasSubstr("warning: 1 GPU not used"), HasSubstr("without CUDA")));
  options_.nvml_path = "/does/not/exist.so";
  EXPECT_THAT(WhyNone(""), AllOf(HasSubstr("warning: "), HasSubstr("/does/not/exist.so")));
}

TEST(XidTest, SaysWhoIsAtFault) {
  for (const int64_t xid : {13, 31, 43, 45, 63}) EXPECT_FALSE(MeaningOfXid(xid).is_of_hardware) << xid;
  for (const int64_t xid : {48, 64, 74, 79, 94, 95, 119})
    EXPECT_TRUE(MeaningOfXid(xid).is_of_hardware) << xid;
  EXPECT_THAT(MeaningOfXid(74).text, HasSubstr("NVLink"));
  EXPECT_THAT(MeaningOfXid(100000).text, HasSubstr("dmesg"));
}

}  // namespace
}  // namespace tandem
