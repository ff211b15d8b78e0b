#include "server/admission/folder_links.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/admission/idx_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// As any user who is not root: what modes forbid, this thread may not do.
class WithoutPrivileges {
 public:
  WithoutPrivileges() {
    EXPECT_EQ(syscall(SYS_capget, &header_, before_), 0);
    __user_cap_data_struct none[2] = {before_[0], before_[1]};
    none[0].effective = none[1].effective = 0;
    EXPECT_EQ(syscall(SYS_capset, &header_, none), 0);
  }
  ~WithoutPrivileges() { EXPECT_EQ(syscall(SYS_capset, &header_, before_), 0); }

 private:
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2] = {};
};

TEST(FolderLinksTest, FoldersThatCannotBeLookedIntoHideNothingElse) {
  const std::string folder = FreshFolder();
  const std::string outside = FreshFolder();
  const auto none = [](const fs::path&) { return false; };
  // Whatever the order in which the file system tells them.
  const auto lock = [&folder](int first) {
    for (int i = first; i < first + 8; ++i) {
      fs::create_directory(folder + "/." + std::to_string(i));
      fs::permissions(folder + "/." + std::to_string(i), fs::perms::none);
    }
  };
  lock(0);
  const WithoutPrivileges without_privileges;
  std::error_code error;
  fs::directory_iterator(folder + "/.0", error);
  ASSERT_TRUE(error) << "modes do not hold here";
  EXPECT_EQ(*FindLinkOut(folder, none), std::nullopt);
  fs::create_directory_symlink(outside, folder + "/out");
  lock(8);
  EXPECT_EQ(*FindLinkOut(folder, none), folder + "/out");
  fs::create_directory(folder + "/class");
  fs::rename(folder + "/out", folder + "/class/out");
  EXPECT_EQ(*FindLinkOut(folder, none), folder + "/class/out");
}

}  // namespace
}  // namespace tandem
