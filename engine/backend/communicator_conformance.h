#ifndef TANDEM_ENGINE_BACKEND_COMMUNICATOR_CONFORMANCE_H_
#define TANDEM_ENGINE_BACKEND_COMMUNICATOR_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/backend/communicator.h"
#include "gtest/gtest.h"

namespace tandem {

// Makes groups for CommunicatorConformance.
struct CommunicatorMaker {
  std::string name;
  // Returns a new group. Entry r is the end of rank r. Each end may be used and destroyed by its own thread.
  std::function<std::vector<std::unique_ptr<Communicator>>(int world_size)> make;
  // As `make`, but the group aborts when ranks have waited for others for `watchdog`. Null if unsupported.
  std::function<std::vector<std::unique_ptr<Communicator>>(int world_size, absl::Duration watchdog)>
      make_watched = nullptr;
};

inline void PrintTo(const CommunicatorMaker& maker, std::ostream* out) { *out << maker.name; }

// The tests that every communicator must pass. A test links :communicator_conformance and instantiates them:
//
//   INSTANTIATE_TEST_SUITE_P(Local, CommunicatorConformance, testing::Values(CommunicatorMaker{"local",
//   ...}));
class CommunicatorConformance : public testing::TestWithParam<CommunicatorMaker> {};

// Tests that a rank of this new group may pass null data to another rank's Broadcast and then receives
// nothing. Only groups of host memory offer this. The group needs at least 3 ranks.
void TestDroppedBroadcasts(const std::vector<std::unique_ptr<Communicator>>& group);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_COMMUNICATOR_CONFORMANCE_H_
