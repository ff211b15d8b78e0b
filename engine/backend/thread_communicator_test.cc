#include "engine/backend/thread_communicator.h"

#include "engine/backend/communicator_conformance.h"

namespace tandem {
namespace {

INSTANTIATE_TEST_SUITE_P(Thread, CommunicatorConformance,
                         testing::Values(CommunicatorMaker{"thread", CreateThreadCommunicators}));

}  // namespace
}  // namespace tandem
