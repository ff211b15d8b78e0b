#ifndef TANDEM_SERVER_STORE_WITHOUT_PRIVILEGES_H_
#define TANDEM_SERVER_STORE_WITHOUT_PRIVILEGES_H_

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace tandem {

// For tests: while alive, file modes restrict this thread and threads that it starts, even as root.
class WithoutPrivileges {
 public:
  WithoutPrivileges() {
    EXPECT_EQ(syscall(SYS_capget, &header_, before_), 0);
    __user_cap_data_struct none[2] = {before_[0], before_[1]};
    none[0].effective = none[1].effective = 0;
    EXPECT_EQ(syscall(SYS_capset, &header_, none), 0);
  }
  ~WithoutPrivileges() { EXPECT_EQ(syscall(SYS_capset, &header_, before_), 0); }
  WithoutPrivileges(const WithoutPrivileges&) = delete;
  WithoutPrivileges& operator=(const WithoutPrivileges&) = delete;

 private:
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2] = {};
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_WITHOUT_PRIVILEGES_H_
