#include "server/admission/folder_links.h"

#include <gtest/gtest.h>

#include "server/admission/idx_files.h"
#include "server/store/without_privileges.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

TEST(FolderLinksTest, FoldersThatCannotBeLookedIntoHideNothingElse) {
  const std::string folder = FreshFolder();
  const std::string outside = FreshFolder();
  const auto none = [](const fs::path&) { return false; };
  // The file system may list the folders in any order.
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

TEST(FolderLinksTest, FoldersThatGoWhileItIsLookedAtAreNoHarm) {
  const std::string folder = FreshFolder();
  const std::string allowed = FreshFolder(), outside = FreshFolder();
  // The file system may list the folders in any order; some of these folders come after a link.
  for (int i = 0; i < 32; ++i) {
    fs::create_directory(folder + "/folder-" + std::to_string(i));
    fs::create_directory_symlink(allowed, folder + "/link-" + std::to_string(i));
  }
  int removals = 0;
  const auto goes = [&](const fs::path& target) {
    for (int i = 0; i < 32; ++i) removals += fs::remove(folder + "/folder-" + std::to_string(i)) ? 1 : 0;
    return target == allowed;
  };
  const auto found = FindLinkOut(folder, goes);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, std::nullopt);
  EXPECT_EQ(removals, 32);
  // The remaining folders are all checked.
  for (int i = 0; i < 32; ++i) fs::create_directory(folder + "/folder-" + std::to_string(i));
  fs::create_directory_symlink(outside, folder + "/out");
  EXPECT_EQ(*FindLinkOut(folder, goes), folder + "/out");
  // If folders reappear at each look, the check still ends.
  const auto returns = [&](const fs::path&) {
    for (int i = 0; i < 32; ++i) {
      const std::string old = folder + "/folder-" + std::to_string(i);
      if (!fs::remove(old)) fs::create_directory(old);
    }
    return true;
  };
  const auto never = FindLinkOut(folder, returns);
  EXPECT_TRUE(never.ok() || absl::IsUnavailable(never.status())) << never.status();
}

}  // namespace
}  // namespace tandem
