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
  // A new group: entry r is the end of rank r. Each may be used, and destroyed, by its own thread.
  std::function<std::vector<std::unique_ptr<Communicator>>(int world_size)> make;
  // The same, which aborts a group in which ranks have waited so long for others. Null where there is no
  // such.
  std::function<std::vector<std::unique_ptr<Communicator>>(int world_size, absl::Duration watchdog)>
      make_watched = nullptr;
};

inline void PrintTo(const CommunicatorMaker& maker, std::ostream* out) { *out << maker.name; }

// What every communicator must do. A test links :communicator_conformance and says
//   INSTANTIATE_TEST_SUITE_P(Local, CommunicatorConformance, testing::Values(CommunicatorMaker{"local",
//   ...}));
class CommunicatorConformance : public testing::TestWithParam<CommunicatorMaker> {};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_COMMUNICATOR_CONFORMANCE_H_
