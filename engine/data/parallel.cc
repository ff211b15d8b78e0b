#include "engine/data/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <thread>

namespace tandem {

std::vector<absl::Status> RunInParallel(size_t count, const std::function<absl::Status(size_t)>& work) {
  std::vector<absl::Status> statuses(count);
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  const auto run = [&] {
    for (size_t i = next++; i < count && !failed; i = next++) {
      try {
        statuses[i] = work(i);
      } catch (const std::bad_alloc&) {
        statuses[i] = absl::ResourceExhaustedError("no memory to read the data set");
      }
      if (!statuses[i].ok()) failed = true;
    }
  };
  std::vector<std::thread> threads;
  const size_t workers = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 1; i < workers; ++i) {
    try {
      threads.emplace_back(run);
    } catch (const std::exception&) {
      // The system has no memory or thread left. The running threads do all the work.
      break;
    }
  }
  run();
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

}  // namespace tandem
