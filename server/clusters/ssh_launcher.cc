#include "server/clusters/ssh_launcher.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/training/replica_spec.h"
#include "server/clusters/attempt_files.h"
#include "server/clusters/ssh/task_script.h"
#include "server/store/records.h"
#include "server/workers/job_folder.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using State = LaunchedAttempt::State;

// The time until a started task has its description in its environment.
constexpr absl::Duration kStartLimit = absl::Seconds(10);
// The time for which an ended attempt is in the answers.
constexpr absl::Duration kEndedKept = absl::Minutes(5);
// The age of a host's last answer with which a list of the hosts is fresh.
constexpr absl::Duration kFresh = absl::Seconds(10);
// Linux limits an argument of a program to 128 KiB.
constexpr size_t kMostScript = 120 << 10;
// The workers of an attempt of which nothing is known.
constexpr int kMostWorkers = 1024;

// Calls `call` with each number below `count`, at the same time.
void ForEach(size_t count, const std::function<void(size_t)>& call) {
  std::vector<std::thread> threads;
  threads.reserve(count);
  for (size_t i = 0; i < count; ++i) threads.emplace_back([&call, i] { call(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

HostNeed HostNeedOf(const v1::JobSpec& spec) {
  const v1::SshCluster& ssh = spec.cluster().ssh();
  HostNeed need;
  need.nodes = std::max(1, ssh.nodes());
  need.tasks_per_node = std::max(1, spec.replicas().workers()) / need.nodes;
  need.cores_per_task = std::max(1, ssh.cpus_per_task());
  if (spec.replicas().device_kind() == v1::DEVICE_KIND_GPU) {
    need.gpus_per_node = static_cast<int>(LoadsOf(spec.replicas()).size()) / need.nodes;
  }
  return need;
}

SshLauncher::SshLauncher(Options options, HostClient* client)
    : options_(std::move(options)), client_(client) {
  for (const std::string& name : options_.hosts) {
    hosts_.push_back({.name = name, .fault = absl::StrCat("host ", name, " has not answered yet")});
  }
}

JobFolder SshLauncher::FolderOf(const AttemptId& id) const {
  return JobFolder(absl::StrCat(options_.jobs_folder, "/", id.job_id));
}

std::vector<Host> SshLauncher::Hosts() {
  MutexLock lock(&mutex_);
  return hosts_;
}

absl::Duration SshLauncher::AgeOfLook() {
  MutexLock lock(&mutex_);
  return options_.clock->Elapsed() - looked_at_;
}

void SshLauncher::Look() {
  std::vector<absl::StatusOr<Host>> looks(options_.hosts.size(), absl::UnknownError(""));
  ForEach(looks.size(), [&](size_t i) { looks[i] = client_->Look(options_.hosts[i]); });
  std::map<AttemptId, HostTask> seen;
  {
    MutexLock lock(&mutex_);
    looked_at_ = options_.clock->Elapsed();
    for (size_t i = 0; i < looks.size(); ++i) {
      const std::string fault(looks[i].status().message());
      if (fault != hosts_[i].fault) {
        spdlog::log(looks[i].ok() ? spdlog::level::info : spdlog::level::warn, "host={} {}",
                    options_.hosts[i], looks[i].ok() ? "answers" : fault);
      }
      if (looks[i].ok()) {
        looks[i]->same_as = hosts_[i].same_as;
        hosts_[i] = *std::move(looks[i]);
        for (const HostTask& task : hosts_[i].tasks) seen.emplace(IdOf(task), task);
      } else {
        // What ran on the host may still run.
        hosts_[i].fault = fault;
      }
    }
    std::vector<std::string> before;
    for (const Host& host : hosts_) before.push_back(host.same_as);
    FindSameMachines(&hosts_);
    for (size_t i = 0; i < hosts_.size(); ++i) {
      if (hosts_[i].same_as.empty() || hosts_[i].same_as == before[i]) continue;
      spdlog::warn("host={} is not used: {}", hosts_[i].name,
                   DescribeSameMachine(hosts_[i].name, hosts_[i].same_as));
    }
  }
  for (const auto& [id, task] : seen) {
    if (attempts_.count(id) == 0) Adopt(id, task);
  }
}

SshLauncher::Attempt& SshLauncher::AddAttempt(const AttemptId& id) {
  Attempt& attempt = attempts_[id];
  attempt.seen.id = id;
  attempt.seen.handle = absl::StrCat(id.job_id, ":", id.attempt);
  return attempt;
}

void SshLauncher::Adopt(const AttemptId& id, const HostTask& task) {
  Attempt& attempt = AddAttempt(id);
  attempt.seen.state = State::kRunning;
  attempt.workers = task.workers;
  std::error_code error;
  attempt.is_foreign = !std::filesystem::exists(FolderOf(id).AttemptFolder(id.attempt), error);
}

void SshLauncher::End(Attempt& attempt, v1::StateReason reason, std::string detail) {
  attempt.seen.state = State::kEnded;
  attempt.seen.reason = reason;
  attempt.seen.detail = std::move(detail);
  attempt.ended_at = options_.clock->Elapsed();
}

bool SshLauncher::Update(Attempt& attempt) {
  const absl::Duration now = options_.clock->Elapsed();
  const std::vector<Host> hosts = Hosts();
  std::set<int> alive;
  std::set<std::string> nodes(attempt.seen.nodes.begin(), attempt.seen.nodes.end());
  std::set<std::string> answering;
  for (const Host& host : hosts) {
    if (!host.answers()) continue;
    answering.insert(host.name);
    for (const HostTask& task : host.tasks) {
      if (IdOf(task) != attempt.seen.id) continue;
      // TakeOver did not know the number.
      if (attempt.workers == kMostWorkers) attempt.workers = task.workers;
      alive.insert(task.rank);
      nodes.insert(host.name);
    }
  }
  const bool is_whole = static_cast<int>(alive.size()) >= attempt.workers;
  // The tasks on a host end in the order of their work, so read their files only after the look.
  const AttemptId& id = attempt.seen.id;
  const TaskFiles files = is_whole ? TaskFiles() : ReadTaskFiles(FolderOf(id), id.attempt, attempt.workers);
  // A worker may have changed the files.
  for (const Host& host : hosts) {
    for (const auto& [rank, name] : files.started) {
      if (name == host.name) nodes.insert(name);
    }
  }
  attempt.seen.nodes.assign(nodes.begin(), nodes.end());
  const bool is_known = std::includes(answering.begin(), answering.end(), nodes.begin(), nodes.end());

  const auto failed = std::find_if(files.ended.begin(), files.ended.end(),
                                   [](const auto& entry) { return entry.second != 0; });
  if (alive.empty() && is_known) {
    // The processes of a new attempt may not be visible yet.
    if (files.started.empty() && now < attempt.placed_at + kStartLimit) return true;
    const v1::StateReason reason =
        attempt.is_cancelled ? v1::STATE_REASON_CLUSTER_CANCELLED : attempt.failure.reason;
    std::string detail = attempt.failure.detail;
    if (detail.empty() && failed != files.ended.end()) {
      detail = absl::StrCat("worker ", failed->first, " exited with the code ", failed->second);
    }
    End(attempt, reason, std::move(detail));
    return true;
  }
  const auto is_lost = [&](int rank) { return alive.count(rank) == 0 && files.ended.count(rank) == 0; };
  bool is_incomplete = false;
  for (int rank = 0; rank < attempt.workers && is_known && !is_whole; ++rank) {
    is_incomplete = is_incomplete || is_lost(rank);
  }
  attempt.incomplete_since =
      is_incomplete ? std::min(attempt.incomplete_since, now) : absl::InfiniteDuration();
  const bool has_failed = failed != files.ended.end() || !attempt.failure.detail.empty() ||
                          attempt.incomplete_since + options_.late_code_limit <= now;
  if (attempt.is_cancelled || (has_failed && !attempt.is_foreign)) Stop(attempt).IgnoreError();
  return is_known;
}

absl::Status SshLauncher::Stop(Attempt& attempt) {
  const absl::Duration now = options_.clock->Elapsed();
  const bool is_first = attempt.terminated_at == absl::InfiniteDuration();
  if (!is_first && now < attempt.terminated_at + options_.kill_grace) return absl::OkStatus();
  const std::vector<std::string>& nodes = attempt.seen.nodes;
  std::vector<absl::Status> answers(nodes.size());
  ForEach(nodes.size(), [&](size_t i) {
    answers[i] = client_->Stop(nodes[i], attempt.seen.id.job_id, attempt.seen.id.attempt,
                               is_first ? HostStop::kTerminate : HostStop::kKill);
  });
  absl::Status result;
  bool has_answer = false;
  for (const absl::Status& answer : answers) {
    has_answer = has_answer || answer.ok();
    result.Update(answer);
  }
  // Without any answer, the signal is sent again. A host that is away must not keep the others from SIGKILL.
  if (is_first && has_answer) attempt.terminated_at = now;
  return result;
}

absl::StatusOr<LaunchedAttempt> SshLauncher::Submit(const LaunchRequest& request) {
  const v1::Job& job = request.job;
  const JobFolder folder(job.folder());
  const AttemptId id = {JobId(job.name()), job.attempt()};
  MutexLock lock(&calls_);
  if (const auto known = attempts_.find(id); known != attempts_.end()) return known->second.seen;
  TaskScriptOptions script;
  script.attempt_folder = folder.AttemptFolder(job.attempt());
  script.command = request.command;
  script.environment = request.environment;
  script.required_paths = request.required_paths;
  script.workers = std::max(1, job.spec().replicas().workers());
  // LogPath of each worker. The first worker's log has no number.
  script.task_output = folder.path() + "/worker-";
  std::string text = TaskScript(script);
  if (text.size() > kMostScript) {
    return absl::InvalidArgumentError(absl::StrCat("cannot start the workers by SSH: their script has ",
                                                   text.size(), " bytes, more than ", kMostScript,
                                                   "; name fewer files in the job, such as a folder"));
  }
  Attempt& attempt = AddAttempt(id);
  attempt.script = std::move(text);
  attempt.need = HostNeedOf(job.spec());
  attempt.priority = job.priority();
  attempt.number = next_number_++;
  attempt.workers = script.workers;
  return attempt.seen;
}

absl::StatusOr<std::vector<LaunchedAttempt>> SshLauncher::Observe() {
  MutexLock lock(&calls_);
  const std::vector<Host> before = Hosts();
  const bool are_known =
      std::all_of(before.begin(), before.end(), [](const Host& host) { return host.answers(); });
  if (attempts_.empty() && are_known) return std::vector<LaunchedAttempt>();
  Look();
  const absl::Duration now = options_.clock->Elapsed();
  std::erase_if(attempts_, [&](const auto& entry) {
    const Attempt& attempt = entry.second;
    return attempt.ended_at + (attempt.is_foreign ? absl::ZeroDuration() : kEndedKept) <= now;
  });
  std::set<AttemptId> unknown;
  for (auto& [id, attempt] : attempts_) {
    if (attempt.seen.state == State::kRunning && !Update(attempt)) unknown.insert(id);
  }
  StartWaiting();
  std::vector<LaunchedAttempt> answer;
  for (const auto& [id, attempt] : attempts_) {
    if (unknown.count(id) == 0) answer.push_back(attempt.seen);
  }
  return answer;
}

void SshLauncher::StartWaiting() {
  std::vector<Attempt*> waiting;
  for (auto& [id, attempt] : attempts_) {
    if (attempt.seen.state == State::kWaiting) waiting.push_back(&attempt);
  }
  std::sort(waiting.begin(), waiting.end(), [](const Attempt* a, const Attempt* b) {
    return a->priority != b->priority ? a->priority > b->priority : a->number < b->number;
  });
  const Attempt* first = nullptr;
  for (Attempt* const attempt : waiting) {
    if (first != nullptr) {
      attempt->seen.detail = absl::StrCat("it is behind job ", first->seen.id.job_id);
      continue;
    }
    const std::vector<Host> hosts = Hosts();
    if (const std::optional<HostChoice> choice = ChooseHosts(hosts, attempt->need); choice.has_value()) {
      Start(*attempt, *choice);
    } else {
      attempt->seen.detail = DescribeShortage(hosts, attempt->need);
      std::vector<Host> up;
      std::copy_if(hosts.begin(), hosts.end(), std::back_inserter(up),
                   [](const Host& host) { return host.answers(); });
      // Nobody waits for a job that needs a host that is away.
      if (CountLargeEnough(up, attempt->need) >= attempt->need.nodes) first = attempt;
    }
  }
}

void SshLauncher::Start(Attempt& attempt, const HostChoice& choice) {
  std::vector<HostStart> starts;
  attempt.seen.nodes.clear();
  int rank = 0;
  for (const auto& [place, gpus] : choice) {
    HostStart& start = starts.emplace_back();
    start.script = attempt.script;
    start.attempt_folder = FolderOf(attempt.seen.id).AttemptFolder(attempt.seen.id.attempt);
    for (int i = 0; i < attempt.need.tasks_per_node; ++i) {
      HostTask& task = start.tasks.emplace_back();
      task.job_id = attempt.seen.id.job_id;
      task.attempt = attempt.seen.id.attempt;
      task.rank = rank++;
      task.workers = attempt.workers;
      task.cores = attempt.need.cores_per_task;
      task.gpus = gpus;
    }
    attempt.seen.nodes.push_back(options_.hosts[place]);
    MutexLock lock(&mutex_);
    std::vector<HostTask>& tasks = hosts_[place].tasks;
    tasks.insert(tasks.end(), start.tasks.begin(), start.tasks.end());
  }
  attempt.seen.state = State::kRunning;
  attempt.seen.detail.clear();
  attempt.seen.start = options_.clock->Now();
  attempt.placed_at = options_.clock->Elapsed();
  std::vector<absl::Status> answers(starts.size());
  ForEach(starts.size(), [&](size_t i) { answers[i] = client_->Start(attempt.seen.nodes[i], starts[i]); });
  attempt.script.clear();
  {
    // Until the next look, no other attempt tries the host.
    MutexLock lock(&mutex_);
    size_t i = 0;
    for (const auto& [place, gpus] : choice) {
      if (absl::IsUnavailable(answers[i])) hosts_[place].fault = std::string(answers[i].message());
      ++i;
    }
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].ok()) continue;
    attempt.failure.reason = absl::IsUnavailable(answers[i]) ? v1::STATE_REASON_CLUSTER_NODE_FAILED
                                                             : v1::STATE_REASON_WORKER_START_FAILED;
    attempt.failure.detail =
        absl::StrCat("cannot start on node ", attempt.seen.nodes[i], ": ", answers[i].message());
    Stop(attempt).IgnoreError();
    return;
  }
}

absl::Status SshLauncher::Cancel(const LaunchedAttempt& attempt) {
  MutexLock lock(&calls_);
  const auto found = attempts_.find(attempt.id);
  if (found == attempts_.end() || found->second.seen.state == State::kEnded) return absl::OkStatus();
  found->second.is_cancelled = true;
  if (found->second.seen.state == State::kRunning) return Stop(found->second);
  End(found->second, v1::STATE_REASON_CLUSTER_CANCELLED, "");
  return absl::OkStatus();
}

absl::StatusOr<std::optional<LaunchedAttempt>> SshLauncher::TakeOver(const AttemptId& id) {
  MutexLock lock(&calls_);
  // After a restart there may be many attempts, and each look may wait for a host.
  if (attempts_.count(id) == 0 && AgeOfLook() >= kFresh) Look();
  if (const auto found = attempts_.find(id); found != attempts_.end()) return found->second.seen;
  // No worker has begun. If an unanswered start arrives late, its workers are dismissed.
  if (!StartOfAttempt(FolderOf(id), id.attempt).has_value()) return std::nullopt;
  Attempt& attempt = AddAttempt(id);
  attempt.seen.state = State::kRunning;
  attempt.workers = kMostWorkers;
  // The next Observe finds its end. While its hosts are away, the attempt is missing from the answers.
  return attempt.seen;
}

absl::Status SshLauncher::Test(const v1::JobSpec& spec) {
  const HostNeed need = HostNeedOf(spec);
  const std::vector<Host> hosts = Hosts();
  if (CountLargeEnough(hosts, need) >= need.nodes) return absl::OkStatus();
  HostNeed without_gpus = need;
  without_gpus.gpus_per_node = 0;
  const bool has_cores = CountLargeEnough(hosts, without_gpus) >= need.nodes;
  const std::string sizes = absl::StrJoin(hosts, ", ", [](std::string* out, const Host& host) {
    absl::StrAppend(out, host.name);
    if (!host.same_as.empty()) {
      absl::StrAppend(out, ", which is the same machine as ", host.same_as);
    } else if (host.cores > 0) {
      absl::StrAppend(out, " with ", host.cores, " cores and ", host.gpus, " GPUs");
    }
  });
  return FieldError(
      has_cores || static_cast<size_t>(need.nodes) > hosts.size() ? "nodes" : "cpus_per_task",
      absl::StrCat("the job needs ", DescribeNeed(need), ", and the daemon's hosts are ", sizes));
}

absl::StatusOr<std::vector<v1::ClusterPartition>> SshLauncher::Partitions() {
  // If hosts are being called, the last look must do: nobody waits here for a host that hangs.
  if (AgeOfLook() == absl::InfiniteDuration()) {
    MutexLock lock(&calls_);
    if (AgeOfLook() >= kFresh) Look();
  } else if (AgeOfLook() >= kFresh && calls_.TryLock()) {
    Look();
    calls_.Unlock();
  }
  std::vector<v1::ClusterPartition> partitions;
  for (const Host& host : Hosts()) {
    v1::ClusterPartition& partition = partitions.emplace_back();
    partition.set_name(host.name);
    partition.set_is_default(true);
    const bool is_used = host.answers() && host.same_as.empty();
    partition.set_is_up(is_used);
    partition.set_nodes(1);
    partition.set_free_nodes(is_used && host.tasks.empty() ? 1 : 0);
    partition.set_cpus_per_node(host.cores);
    partition.set_gpus_per_node(host.gpus);
  }
  return partitions;
}

}  // namespace tandem
