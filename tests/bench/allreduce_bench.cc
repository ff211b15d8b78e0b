// Measures an all-reduce between replicas that are threads of one process, and compares it with plain copies
// of the same size. Prints a JSON line:
//   bazel run -c opt //tests/bench:allreduce_bench -- --ranks=2 --bytes=45000000 --rounds=100
// Algorithm bandwidth is bytes / time. Bus bandwidth is algorithm bandwidth times 2 (n - 1) / n: the bytes
// that a ring would move over each link. It can be compared for any number of ranks. A copy reads and writes
// each byte once.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "engine/collectives/local/local_group.h"
#include "nlohmann/json.hpp"

namespace tandem {
namespace {

struct Settings {
  int ranks = 2;
  int64_t bytes = 45'000'000;
  int rounds = 100;
};

// Seconds of each round, from when all ranks begin it to when the first has ended it. `work` runs on a thread
// a rank.
std::vector<double> Time(const Settings& settings, const std::function<void(int rank)>& work) {
  const auto gates = CreateLocalGroup(settings.ranks);
  std::vector<double> seconds(settings.rounds);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < settings.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      for (double& round : seconds) {
        if (!gates[rank]->Barrier().ok()) return;
        const auto begin = std::chrono::steady_clock::now();
        work(rank);
        if (rank == 0)
          round = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // The first rounds touch the memory.
  seconds.erase(seconds.begin(), seconds.begin() + std::min<int>(5, settings.rounds - 1));
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

void Add(const std::string& name, const std::vector<double>& seconds, double bytes,
         nlohmann::ordered_json* out) {
  (*out)[name + "_seconds_best"] = seconds.front();
  (*out)[name + "_seconds_median"] = seconds[seconds.size() / 2];
  (*out)[name + "_gb_per_second"] = bytes / seconds.front() / 1e9;
}

int Run(const Settings& settings) {
  const int64_t elements = settings.bytes / static_cast<int64_t>(sizeof(float));
  std::vector<std::vector<float>> buffers(settings.ranks, std::vector<float>(elements, 1.0F));
  std::vector<std::vector<float>> copies(settings.ranks, std::vector<float>(elements, 0.0F));
  const auto group = CreateLocalGroup(settings.ranks);
  absl::Status status;
  const std::vector<double> reduce = Time(settings, [&](int rank) {
    const absl::Status reduced =
        group[rank]->AllReduce({buffers[rank].data(), elements, DType::kFloat32}, ReduceOp::kAverage);
    if (rank == 0) status.Update(reduced);
  });
  if (!status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  const auto copy = [&](int rank) {
    std::memcpy(copies[rank].data(), buffers[rank].data(), elements * sizeof(float));
  };
  const std::vector<double> all = Time(settings, copy);
  const std::vector<double> one = Time(settings, [&](int rank) {
    if (rank == 0) copy(rank);
  });
  const double bytes = static_cast<double>(elements) * sizeof(float);
  nlohmann::ordered_json out = {{"bench", "allreduce"},
                                {"communicator", "local"},
                                {"ranks", settings.ranks},
                                {"bytes", elements * static_cast<int64_t>(sizeof(float))}};
  Add("allreduce", reduce, bytes, &out);
  out["bus_gb_per_second"] =
      bytes / reduce.front() / 1e9 * 2 * (settings.ranks - 1) / static_cast<double>(settings.ranks);
  Add("memcpy", one, bytes, &out);
  Add("memcpy_of_each_rank", all, bytes, &out);
  std::cout << out.dump() << std::endl;
  return 0;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("All-reduce between threads, beside memcpy.");
  app.add_option("--ranks", settings.ranks, "threads that reduce together")->check(CLI::Range(1, 64));
  app.add_option("--bytes", settings.bytes, "of each rank")->check(CLI::Range(int64_t{4}, int64_t{1} << 33));
  app.add_option("--rounds", settings.rounds, "how often")->check(CLI::Range(2, 1'000'000));
  CLI11_PARSE(app, argc, argv);
  return Run(settings);
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
