#include "tests/bench/load_soak.h"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tests/bench/loaded_daemon.h"
#include "tests/integration/holdings.h"
#include "tests/integration/job_specs.h"

namespace tandem::bench {
namespace {

constexpr absl::Duration kDeadline = absl::Minutes(5);

struct Sample {
  double minute = 0;
  testing::Holdings holdings;
};

class Soak {
 public:
  explicit Soak(const SoakSettings& settings) : settings_(settings) {}

  absl::Status Run() {
    TANDEM_RETURN_IF_ERROR(daemon_.Start());
    TANDEM_ASSIGN_OR_RETURN(const v1::Job job, daemon_.StartEndlessJob());
    std::vector<std::thread> threads;
    for (int i = 0; i < settings_.clients; ++i) {
      threads.emplace_back([this] { Repeat([this](v1::JobService::Stub* stub) { return OneJob(stub); }); });
    }
    for (int i = 0; i < settings_.watchers; ++i) {
      threads.emplace_back([this, name = job.name()] {
        Repeat([&](v1::JobService::Stub* stub) { return WatchForAWhile(stub, name); });
      });
    }
    const absl::Time begin = absl::Now();
    std::vector<Sample> samples;
    while (absl::Now() - begin < settings_.minutes * absl::Minutes(1)) {
      absl::SleepFor(settings_.sample_seconds * absl::Seconds(1));
      samples.push_back(
          {absl::ToDoubleMinutes(absl::Now() - begin), testing::HoldingsOf(daemon_.process().pid())});
      Print(samples.back());
    }
    stopping_ = true;
    for (std::thread& thread : threads) thread.join();
    Summarise(samples);
    MutexLock lock(&mutex_);
    return status_;
  }

 private:
  // Repeats `thing` with its own connection until the end or an error.
  template <typename Thing>
  void Repeat(Thing thing) {
    const auto stub = daemon_.NewStub();
    while (!stopping_) {
      const absl::Status status = thing(stub.get());
      if (status.ok()) continue;
      MutexLock lock(&mutex_);
      status_.Update(status);
      return;
    }
  }

  absl::Status OneJob(v1::JobService::Stub* stub) {
    v1::CreateJobRequest create;
    *create.mutable_spec() = testing::SmallJob({});
    v1::Job job;
    TANDEM_RETURN_IF_ERROR(FromGrpc(stub->CreateJob(daemon_.NewContext(kDeadline).get(), create, &job)));
    v1::WatchJobRequest watch;
    watch.set_name(job.name());
    {
      const auto context = daemon_.NewContext(kDeadline);
      const auto reader = stub->WatchJob(context.get(), watch);
      for (v1::JobEvent event; reader->Read(&event);) {
      }
      TANDEM_RETURN_IF_ERROR(FromGrpc(reader->Finish()));
    }
    v1::GetJobRequest get;
    get.set_name(job.name());
    TANDEM_RETURN_IF_ERROR(FromGrpc(stub->GetJob(daemon_.NewContext(kDeadline).get(), get, &job)));
    v1::ListJobsResponse listed;
    TANDEM_RETURN_IF_ERROR(
        FromGrpc(stub->ListJobs(daemon_.NewContext(kDeadline).get(), v1::ListJobsRequest(), &listed)));
    v1::DeleteJobRequest remove;
    remove.set_name(job.name());
    google::protobuf::Empty nothing;
    TANDEM_RETURN_IF_ERROR(FromGrpc(stub->DeleteJob(daemon_.NewContext(kDeadline).get(), remove, &nothing)));
    ++jobs_;
    return absl::OkStatus();
  }

  absl::Status WatchForAWhile(v1::JobService::Stub* stub, const std::string& name) {
    v1::WatchJobRequest watch;
    watch.set_name(name);
    const auto context = daemon_.NewContext(absl::Seconds(20));
    const auto reader = stub->WatchJob(context.get(), watch);
    for (v1::JobEvent event; reader->Read(&event);) {
    }
    const absl::Status status = FromGrpc(reader->Finish());
    // The call ended by its deadline, as planned.
    return absl::IsDeadlineExceeded(status) ? absl::OkStatus() : status;
  }

  void Print(const Sample& sample) const {
    std::cout << nlohmann::ordered_json{{"bench", "soak"},
                                        {"minute", sample.minute},
                                        {"daemon_mib", Mib(sample)},
                                        {"files", sample.holdings.files},
                                        {"sockets", sample.holdings.sockets},
                                        {"jobs", jobs_.load()}}
                     .dump()
              << std::endl;
  }

  static double Mib(const Sample& sample) {
    return static_cast<double>(sample.holdings.memory_bytes) / (1 << 20);
  }

  // Caches fill in the first third; then it should stay.
  void Summarise(const std::vector<Sample>& samples) const {
    const auto third = samples.begin() + static_cast<int64_t>(samples.size() / 3);
    double minute = 0;
    double mib = 0;
    for (auto sample = third; sample != samples.end(); ++sample) {
      minute += sample->minute / static_cast<double>(samples.end() - third);
      mib += Mib(*sample) / static_cast<double>(samples.end() - third);
    }
    double covariance = 0;
    double variance = 0;
    for (auto sample = third; sample != samples.end(); ++sample) {
      covariance += (sample->minute - minute) * (Mib(*sample) - mib);
      variance += (sample->minute - minute) * (sample->minute - minute);
    }
    const double slope = variance > 0 ? covariance / variance : 0;
    std::cout << absl::StrFormat("%10s %10s %8s %8s\n", "minute", "MiB", "files", "sockets");
    const size_t step = std::max<size_t>(1, samples.size() / 20);
    for (size_t i = 0; i < samples.size(); i += step) {
      std::cout << absl::StrFormat("%10.1f %10.1f %8d %8d\n", samples[i].minute, Mib(samples[i]),
                                   samples[i].holdings.files, samples[i].holdings.sockets);
    }
    std::cout << nlohmann::ordered_json{{"bench", "soak"},
                                        {"minutes", settings_.minutes},
                                        {"jobs", jobs_.load()},
                                        {"mib_first", samples.empty() ? 0 : Mib(samples.front())},
                                        {"mib_last", samples.empty() ? 0 : Mib(samples.back())},
                                        {"mib_per_hour_after_the_first_third", 60 * slope}}
                     .dump()
              << std::endl;
  }

  const SoakSettings settings_;
  LoadedDaemon daemon_{/*cpu_devices=*/2};
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> jobs_ = 0;
  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status MeasureSoak(const SoakSettings& settings) { return Soak(settings).Run(); }

}  // namespace tandem::bench
