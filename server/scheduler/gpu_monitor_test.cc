#include "server/scheduler/gpu_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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

// Speaks to //server/scheduler/testing:libfake-nvml.so.
class GpuMonitorTest : public ::testing::Test {
 protected:
  GpuMonitorTest() : file_(::testing::TempDir() + "/fake_nvml") {
    setenv("TANDEM_FAKE_NVML", file_.c_str(), /*overwrite=*/1);
    options_.nvml_path =
        absl::StrCat(getenv("TEST_SRCDIR"), "/tandem/server/scheduler/testing/libfake-nvml.so");
    options_.cuda_major = 13;
  }

  void Machine(const std::string& text) const { std::ofstream(file_) << text; }
  static std::vector<std::string> Uuids(const GpuMonitor& monitor) {
    std::vector<std::string> uuids;
    for (const HostGpu& gpu : monitor.gpus()) uuids.push_back(gpu.status.uuid());
    return uuids;
  }
  // Of a machine that offers no GPUs: "info: ..." or "warning: ...".
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
  EXPECT_THAT(WhyNone("init 18\n"), AllOf(HasSubstr("warning: "), HasSubstr("start it again")));
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

}  // namespace
}  // namespace tandem
