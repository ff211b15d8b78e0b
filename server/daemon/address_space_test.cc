#include "server/daemon/address_space.h"

#include <sys/resource.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(AddressSpaceTest, ALimitThatIsTooSmallIsSaid) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  ASSERT_TRUE(before.rlim_cur != RLIM_INFINITY || CheckAddressSpace().ok());
  rlimit limit = {.rlim_cur = rlim_t{500} << 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  const absl::Status status = CheckAddressSpace();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), testing::HasSubstr("limited to 500 MiB (RLIMIT_AS)"));
}

}  // namespace
}  // namespace tandem
