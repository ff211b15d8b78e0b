#include "server/scheduler/available_memory.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace tandem {
namespace {

class AvailableMemoryTest : public testing::Test {
 protected:
  void SetUp() override { Write("/proc/self/cgroup", ""); }
  void Write(const std::string& file, const std::string& content) {
    const std::filesystem::path path = root_ + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }

  const std::string root_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  const int64_t machine_ = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
};

TEST_F(AvailableMemoryTest, IsTheMachinesWithoutControlGroups) {
  EXPECT_EQ(AvailableMemory(root_), machine_);
}

TEST_F(AvailableMemoryTest, IsTheLeastLimitOfVersion2) {
  Write("/proc/self/cgroup", "0::/a.slice/b.service\n");
  Write("/sys/fs/cgroup/a.slice/memory.max", "70000000\n");
  Write("/sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
  EXPECT_EQ(AvailableMemory(root_), 70000000);
  Write("/sys/fs/cgroup/a.slice/b.service/memory.max", "60000000\n");
  EXPECT_EQ(AvailableMemory(root_), 60000000);
}

TEST_F(AvailableMemoryTest, IsTheLeastLimitOfVersion1) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/a/b\n0::/\n");
  Write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "50000000\n");
  Write("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "10000000\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(AvailableMemory(root_), 50000000);
  // A container sees its own group as the root.
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "40000000\n");
  EXPECT_EQ(AvailableMemory(root_), 40000000);
}

}  // namespace
}  // namespace tandem
