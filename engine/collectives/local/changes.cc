#include "engine/collectives/local/changes.h"

namespace tandem {
namespace {

// About 20 microseconds, like a wake-up by the system. Spinning is pointless if the group has more threads
// than cores.
constexpr int kSpins = 1000;

}  // namespace

Changes::Changes(int threads)
    : spins_(static_cast<unsigned>(threads) <= std::thread::hardware_concurrency() ? kSpins : 0) {}

void Changes::Announce() {
  count_.fetch_add(1, std::memory_order_acq_rel);
  count_.notify_all();
}

}  // namespace tandem
