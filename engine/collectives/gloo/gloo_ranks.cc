#include "engine/collectives/gloo/gloo_ranks.h"

#include <thread>
#include <utility>

#include "engine/base/status_macros.h"

namespace tandem {

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> ConnectGlooRanks(const GlooOptions& options,
                                                                            int count,
                                                                            Rendezvous& rendezvous) {
  std::vector<absl::StatusOr<std::unique_ptr<Communicator>>> connected(count);
  // All at once, because each waits for all others.
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      GlooOptions own = options;
      own.rank += i;
      connected[i] = ConnectGlooGroup(own, rendezvous);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::unique_ptr<Communicator>> ends;
  for (absl::StatusOr<std::unique_ptr<Communicator>>& end : connected) {
    TANDEM_RETURN_IF_ERROR(end.status());
    ends.push_back(*std::move(end));
  }
  return ends;
}

}  // namespace tandem
