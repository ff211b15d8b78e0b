#include "server/fetch/fetcher.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/retry_delay.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "proto/data_folder/shards.h"
#include "server/fetch/data_url.h"
#include "server/fetch/public_sets.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<FetchPolicy> WithMirror(const FetchPolicy& policy, const std::string& mirror) {
  if (mirror.empty()) return policy;
  TANDEM_ASSIGN_OR_RETURN(const DataUrl url, ParseDataUrl(mirror));
  return policy.With(url.host, url.port);
}

// More URLs than are asked for within Options::fresh.
constexpr size_t kMostChecked = 100000;

// The delay after which a user with too many fetches may ask again.
constexpr absl::Duration kFetchDelay = absl::Seconds(10);

absl::Status TooMany(const std::string& user, int most) {
  return WithRetryDelay(
      WithReason(absl::ResourceExhaustedError(absl::StrCat(
                     "cannot fetch more data for \"", user, "\": ", most,
                     " URLs of this user are being fetched or wait; wait until one of them is fetched")),
                 "TOO_MANY_FETCHES"),
      kFetchDelay);
}

// Adds the content of a pinned URL.
void AddNeededUrl(const std::string& text, Cache::Needed* needed) {
  const absl::StatusOr<DataUrl> url = ParseDataUrl(text);
  if (!url.ok() || url->sha256.empty()) return;
  needed->emplace(Sha256Of(url->location).value_or(""), url->sha256);
}

absl::Status Stopping() {
  return absl::UnavailableError("the daemon is shutting down; try again when it runs");
}

}  // namespace

// A fetch and its state. The fetcher's lock guards all members except `fetch`.
struct Fetcher::Item {
  Item(const DataUrl& url, PathKind kind, std::vector<std::string> addresses)
      : fetch(url, kind, std::move(addresses)) {}

  FetchItem fetch;
  bool planned = false;
  bool queued = false;
  std::string plan_user;        // The user who pays for the plan.
  int64_t plan_bytes = 0;       // While the item is being planned, the whole limit of the user.
  std::set<std::string> users;  // The users who asked for it.
  bool done = false;
  size_t next = 0;  // The index of the next missing file to fetch.
  int running = 0;
  absl::Status status;
  std::optional<FetchItem::Entry> entry;
  absl::Duration done_at;
};

struct Fetcher::Waiter {
  Parts parts;
  absl::Duration deadline;
  bool background = false;
  absl::AnyInvocable<void(absl::Status)> finish;

  bool IsOver() const {
    bool all = true;
    for (const Part& part : parts) {
      if (part.item->done && !part.item->status.ok()) return true;
      all = all && part.item->done;
    }
    return all;
  }
};

Fetcher::Fetcher(Options options, Cache* cache, Transport* transport)
    : options_(std::move(options)),
      public_policy_(WithMirror(options_.policy, options_.mirror).value_or(options_.policy)),
      cache_(cache),
      transport_(transport),
      planner_(&options_.policy, transport, options_.environment, options_.retry,
               [this](absl::Duration duration) { return Sleep(duration); }),
      public_planner_(&public_policy_, transport, options_.environment, options_.retry,
                      [this](absl::Duration duration) { return Sleep(duration); }),
      tools_{cache,          &planner_,    &public_planner_,
             options_.retry, options_.env, [this](absl::Duration duration) { return Sleep(duration); }} {
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
  threads_.emplace_back([this] { Expire(); });
}

Fetcher::~Fetcher() { Stop(); }

void Fetcher::Stop() {
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    waiters_changed_ = true;
    waiters.swap(waiters_);
  }
  transport_->Stop();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  for (const std::shared_ptr<Waiter>& waiter : waiters) waiter->finish(Stopping());
}

// ---- Requests.

void Fetcher::EnsureUrls(std::vector<FieldUrl> urls, const std::string& user, absl::Duration wait,
                         UrlsDone done) {
  Parts parts;
  FieldViolations violations;
  for (FieldUrl& one : urls) {
    const absl::StatusOr<DataUrl> url = ParseDataUrl(one.url);
    if (!url.ok()) {
      violations.Add(one.field, url.status().message());
      continue;
    }
    absl::StatusOr<std::shared_ptr<Item>> item = FindOrAdd(*url, one.kind, user, {});
    if (!item.ok()) {
      done(item.status());
      return;
    }
    parts.push_back({std::move(one.field), "", *std::move(item)});
  }
  if (!violations.empty()) {
    done(WithReason(violations.ToStatus(), "FETCH_FAILED"));
    return;
  }
  Await(parts, wait, /*background=*/false, [parts, done = std::move(done)](absl::Status status) mutable {
    if (!status.ok()) {
      done(std::move(status));
      return;
    }
    std::vector<std::string> pinned;
    pinned.reserve(parts.size());
    for (const Part& part : parts) pinned.push_back(Pin(part.item->fetch.url(), part.item->entry->sha256()));
    done(std::move(pinned));
  });
}

void Fetcher::FetchPublicSet(const std::string& name, const std::string& user, absl::Duration wait,
                             absl::AnyInvocable<void(absl::Status)> done) {
  const PublicSet* const set = FindPublicSet(name);
  if (set == nullptr) {
    std::vector<std::string> names;
    for (const PublicSet& one : PublicSets()) names.push_back(one.name);
    done(absl::NotFoundError(
        absl::StrCat("name: must be one of the public data sets: ", absl::StrJoin(names, ", "))));
    return;
  }
  Parts parts;
  for (const PublicFile& file : set->files) {
    std::vector<std::string> addresses = file.addresses;
    if (!options_.mirror.empty()) {
      addresses.insert(addresses.begin(),
                       absl::StrCat(absl::StripSuffix(options_.mirror, "/"), "/", set->name, "/", file.name));
    }
    absl::StatusOr<DataUrl> url = ParseDataUrl(file.addresses.front());
    if (!url.ok()) {
      done(url.status());
      return;
    }
    url->sha256 = file.sha256;
    absl::StatusOr<std::shared_ptr<Item>> item =
        FindOrAdd(*std::move(url), PathKind::kFile, user, std::move(addresses));
    if (!item.ok()) {
      done(item.status());
      return;
    }
    parts.push_back({"name", file.name, *std::move(item)});
  }
  bool first = false;
  {
    MutexLock lock(&mutex_);
    first = installing_.insert(name).second;
  }
  // Install the set even if nobody waits for it.
  if (first) {
    Await(parts, absl::InfiniteDuration(), /*background=*/true, [this, name, parts](absl::Status status) {
      if (status.ok()) status = Install(name, parts);
      if (!status.ok()) {
        spdlog::warn("cannot fetch the public data set name={} error={}", name,
                     std::string(status.message()));
      }
      MutexLock lock(&mutex_);
      installing_.erase(name);
    });
  }
  Await(parts, wait, /*background=*/false,
        [this, name, parts, done = std::move(done)](absl::Status status) mutable {
          done(status.ok() ? Install(name, parts) : std::move(status));
        });
}

absl::StatusOr<std::string> Fetcher::LocalPath(const std::string& url, PathKind kind) const {
  TANDEM_ASSIGN_OR_RETURN(const DataUrl parsed, ParseDataUrl(url));
  TANDEM_ASSIGN_OR_RETURN(const std::string url_sha256, Sha256Of(parsed.location));
  const std::optional<FetchItem::Entry> entry = cache_->Find(url_sha256, parsed.sha256);
  if (!entry.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", parsed.shown, ", which is not in the daemon's cache",
                     parsed.sha256.empty()
                         ? ""
                         : " with the content of the job's submission; it may have been removed to make room",
                     "; submit or resume a job that names it, and the daemon fetches it"));
  }
  const bool is_either = kind == PathKind::kFileOrFolder || kind == PathKind::kShards;
  if (!is_either && entry->folder() != (kind == PathKind::kFolder)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", parsed.shown, ", which is a ",
                     entry->folder() ? "folder; it must be a file" : "file; must be a folder"));
  }
  const std::string path = cache_->PathOf(*entry);
  const absl::string_view pattern = WithoutQuery(parsed);
  if (kind != PathKind::kShards || !entry->folder() || !IsShardPattern(pattern)) return path;
  // A pattern may name shards of several parts of a data set. A folder may not.
  return absl::StrCat(path, "/", pattern.substr(FolderOfPattern(pattern).size()));
}

void Fetcher::AddNeeded(const v1::DatasetSpec& spec, Cache::Needed* needed) {
  for (const FieldUrl& one : UrlsOf(spec)) AddNeededUrl(one.url, needed);
}

void Fetcher::AddNeeded(const v1::JobSpec& spec, Cache::Needed* needed) {
  AddNeeded(spec.dataset(), needed);
  if (IsUrl(spec.initial_weights().file())) AddNeededUrl(spec.initial_weights().file(), needed);
}

absl::StatusOr<std::shared_ptr<Fetcher::Item>> Fetcher::FindOrAdd(const DataUrl& url, PathKind kind,
                                                                  const std::string& user,
                                                                  std::vector<std::string> addresses) {
  auto item = std::make_shared<Item>(url, kind, std::move(addresses));
  // If the cache has the content, no thread is needed.
  if (!url.sha256.empty() || IsFresh(item->fetch)) {
    item->entry = item->fetch.FindCached(cache_);
    item->done = item->entry.has_value();
    if (item->done) {
      item->fetch.SetWhole(*item->entry);
      return item;
    }
  }
  MutexLock lock(&mutex_);
  const absl::Duration now = options_.clock->Elapsed();
  std::erase_if(items_, [&](const auto& one) {
    return one.second->done && now - one.second->done_at >= options_.keep_outcome;
  });
  const auto present = items_.find(item->fetch.key());
  const bool is_new = present == items_.end();
  if (!is_new && (present->second->done || present->second->users.contains(user))) return present->second;
  TANDEM_RETURN_IF_ERROR(MakeRoom(user));
  if (is_new) {
    item->users.insert(user);
    items_.emplace(item->fetch.key(), item);
    Offer(item);
    return item;
  }
  present->second->users.insert(user);
  if (present->second->queued) shares_[user].ready.push_back(present->second);
  return present->second;
}

absl::Status Fetcher::MakeRoom(const std::string& user) {
  int own = 0;
  auto oldest = items_.end();
  for (auto one = items_.begin(); one != items_.end(); ++one) {
    const Item& item = *one->second;
    if (!item.users.contains(user)) continue;
    ++own;
    if (item.done && (oldest == items_.end() || item.done_at < oldest->second->done_at)) oldest = one;
  }
  if (own < options_.urls_per_user) return absl::OkStatus();
  if (oldest == items_.end()) return TooMany(user, options_.urls_per_user);
  // Other users may still ask for the outcome.
  oldest->second->users.erase(user);
  if (oldest->second->users.empty()) items_.erase(oldest);
  return absl::OkStatus();
}

void Fetcher::Await(Parts parts, absl::Duration wait, bool background,
                    absl::AnyInvocable<void(absl::Status)> finish) {
  auto waiter = std::make_shared<Waiter>();
  waiter->parts = std::move(parts);
  waiter->background = background;
  waiter->deadline = Clock::Real()->Elapsed() + wait;
  waiter->finish = std::move(finish);
  absl::Status outcome;
  {
    MutexLock lock(&mutex_);
    if (!waiter->IsOver() && !stopping_ && wait > absl::ZeroDuration()) {
      waiters_.push_back(waiter);
      waiters_changed_ = true;
      return;
    }
    if (!waiter->IsOver()) {
      outcome = stopping_ ? Stopping() : DataBeingFetched(ProgressOf(waiter->parts));
    } else {
      outcome = OutcomeOf(waiter->parts);
      Heard(*waiter);
    }
  }
  waiter->finish(std::move(outcome));
}

absl::Status Fetcher::OutcomeOf(const Parts& parts) {
  FieldViolations violations;
  absl::Status first;
  for (const auto& [field, file, item] : parts) {
    if (!item->done || item->status.ok()) continue;
    if (absl::IsCancelled(item->status)) return Stopping();
    violations.Add(field, file.empty()
                              ? item->status.message()
                              : absl::StrCat("has the file ", file, ", which ", item->status.message()));
    if (first.ok()) first = item->status;
  }
  if (violations.empty()) return absl::OkStatus();
  const absl::Status all = violations.ToStatus();
  absl::Status outcome(first.code(), all.message());
  all.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { outcome.SetPayload(type, payload); });
  return WithReason(std::move(outcome), absl::IsInvalidArgument(first) ? "FETCH_FAILED" : GetReason(first));
}

FetchProgress Fetcher::ProgressOf(const Parts& parts) {
  FetchProgress progress;
  bool sizes_known = true, counts_known = true;
  for (const auto& [field, file, item] : parts) {
    const FetchProgress one = item->fetch.progress();
    progress.bytes_done += one.bytes_done;
    progress.bytes_total += one.bytes_total;
    progress.files_done += one.files_done;
    progress.files_total += one.files_total;
    sizes_known = sizes_known && (one.bytes_total > 0 || item->done);
    counts_known = counts_known && (one.files_total > 0 || item->done);
  }
  if (!sizes_known) progress.bytes_total = 0;
  if (!counts_known) progress.files_total = 0;
  return progress;
}

absl::Status Fetcher::Install(const std::string& name, const Parts& parts) {
  MutexLock lock(&install_mutex_);
  const std::string place = absl::StrCat(options_.public_folder, "/", name);
  // A hidden folder is not a set yet.
  const std::string temporary = absl::StrCat(options_.public_folder, "/.", name, ".new");
  std::error_code error;
  if (fs::exists(place, error)) return absl::OkStatus();
  fs::remove_all(temporary, error);
  fs::create_directories(temporary, error);
  if (error)
    return absl::InternalError(absl::StrCat("cannot make the folder ", temporary, ": ", error.message()));
  for (const auto& [field, file, item] : parts) {
    const std::string from = cache_->PathOf(*item->entry);
    const std::string to = absl::StrCat(temporary, "/", item->entry->files(0).path());
    if (link(from.c_str(), to.c_str()) == 0) continue;
    fs::copy_file(from, to, error);
    if (error)
      return absl::InternalError(absl::StrCat("cannot copy ", from, " to ", to, ": ", error.message()));
  }
  TANDEM_RETURN_IF_ERROR(options_.env->SyncDirectory(temporary));
  TANDEM_RETURN_IF_ERROR(options_.env->RenameFile(temporary, place));
  return options_.env->SyncDirectory(options_.public_folder);
}

// ---- Threads.

void Fetcher::Work() {
  while (const std::optional<Step> step = NextStep()) {
    FetchItem& fetch = step->item->fetch;
    Settle(*step, step->file.has_value() ? fetch.FetchFile(tools_, *step->file)
                                         : fetch.Plan(tools_, IsFresh(fetch)));
  }
}

std::optional<Fetcher::Step> Fetcher::NextStep() {
  MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &Fetcher::HasStep));
  if (stopping_) return std::nullopt;
  auto turn = shares_.upper_bound(last_user_);
  std::shared_ptr<Item> item;
  while (turn == shares_.end() || (item = NextOf(turn->second)) == nullptr) {
    turn = turn == shares_.end() ? shares_.begin() : std::next(turn);
  }
  last_user_ = turn->first;
  ++turn->second.running;
  Withdraw(item);
  ++item->running;
  if (!item->planned) {
    item->plan_user = last_user_;
    // The size of the plan is unknown, so no other plan may begin.
    if (item->fetch.may_have_many_files()) Charge(item, options_.plan_bytes_per_user);
    return Step{item, std::nullopt, last_user_};
  }
  const size_t file = item->next++;
  // Queue it behind the user's other items, so that a large item does not delay a small item.
  Offer(item);
  return Step{item, file, last_user_};
}

bool Fetcher::HasStep() const {
  if (stopping_) return true;
  for (const auto& [user, share] : shares_) {
    if (NextOf(share) != nullptr) return true;
  }
  return false;
}

std::shared_ptr<Fetcher::Item> Fetcher::NextOf(const Share& share) const {
  if (share.running >= options_.threads_per_user) return nullptr;
  const bool full = share.plan_bytes >= options_.plan_bytes_per_user;
  const auto may_go_on = [full](const std::shared_ptr<Item>& item) {
    return !full || item->planned || !item->fetch.may_have_many_files();
  };
  const auto next = std::find_if(share.ready.begin(), share.ready.end(), may_go_on);
  return next == share.ready.end() ? nullptr : *next;
}

void Fetcher::Charge(const std::shared_ptr<Item>& item, int64_t plan_bytes) {
  const int64_t more = plan_bytes - std::exchange(item->plan_bytes, plan_bytes);
  if (more == 0) return;
  const auto share = shares_.find(item->plan_user);
  share->second.plan_bytes += more;
  if (share->second.IsIdle()) shares_.erase(share);
}

void Fetcher::Offer(const std::shared_ptr<Item>& item) {
  if (item->queued || item->done || !item->status.ok()) return;
  const bool more = item->planned
                        ? item->next < item->fetch.missing() && item->running < options_.threads_per_url
                        : item->running == 0;
  if (!more) return;
  item->queued = true;
  for (const std::string& user : item->users) shares_[user].ready.push_back(item);
}

void Fetcher::Withdraw(const std::shared_ptr<Item>& item) {
  if (!std::exchange(item->queued, false)) return;
  for (const std::string& user : item->users) {
    const auto share = shares_.find(user);
    std::deque<std::shared_ptr<Item>>& ready = share->second.ready;
    // Usually the first.
    ready.erase(std::find(ready.begin(), ready.end(), item));
    if (share->second.IsIdle()) shares_.erase(share);
  }
}

void Fetcher::Settle(const Step& step, absl::StatusOr<std::optional<FetchItem::Entry>> found) {
  const std::shared_ptr<Item>& item = step.item;
  const int64_t plan_bytes = step.file.has_value() ? 0 : item->fetch.plan_bytes();
  absl::Status status;
  std::optional<FetchItem::Entry> entry;
  {
    MutexLock lock(&mutex_);
    --item->running;
    if (!step.file.has_value()) {
      item->planned = true;
      if (item->fetch.may_have_many_files()) Charge(item, plan_bytes);
    }
    const auto share = shares_.find(step.user);
    --share->second.running;
    if (share->second.IsIdle()) shares_.erase(share);
    if (item->status.ok()) item->status = found.status();
    if (found.ok() && found->has_value()) item->entry = *std::move(found);
    if (!item->status.ok()) Withdraw(item);
    Offer(item);
    if (item->queued || item->running > 0) return;
    status = item->status;
    entry = item->entry;
  }
  // No other thread uses the item now.
  if (status.ok() && !entry.has_value()) {
    absl::StatusOr<FetchItem::Entry> made = item->fetch.Finish(tools_);
    status = made.status();
    if (made.ok()) entry = *std::move(made);
  }
  item->fetch.Leave(cache_);
  std::vector<std::pair<std::shared_ptr<Waiter>, absl::Status>> over;
  {
    MutexLock lock(&mutex_);
    Charge(item, 0);
    item->status = std::move(status);
    item->entry = std::move(entry);
    item->done = true;
    item->done_at = options_.clock->Elapsed();
    if (item->status.ok()) {
      if (checked_.size() >= kMostChecked) checked_.clear();
      checked_[item->fetch.url_sha256()] = item->done_at;
    }
    const auto still_waiting = [](const std::shared_ptr<Waiter>& waiter) { return !waiter->IsOver(); };
    const auto first_over = std::stable_partition(waiters_.begin(), waiters_.end(), still_waiting);
    for (auto waiter = first_over; waiter != waiters_.end(); ++waiter) {
      Heard(**waiter);
      over.emplace_back(*waiter, OutcomeOf((*waiter)->parts));
    }
    waiters_.erase(first_over, waiters_.end());
  }
  for (auto& [waiter, outcome] : over) waiter->finish(std::move(outcome));
}

void Fetcher::Heard(const Waiter& waiter) {
  if (waiter.background) return;
  for (const auto& [field, file, item] : waiter.parts) {
    const auto found = items_.find(item->fetch.key());
    if (item->done && found != items_.end() && found->second == item) items_.erase(found);
  }
}

void Fetcher::Expire() {
  while (true) {
    std::vector<std::pair<std::shared_ptr<Waiter>, absl::Status>> late;
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      absl::Duration earliest = absl::InfiniteDuration();
      for (const std::shared_ptr<Waiter>& waiter : waiters_) earliest = std::min(earliest, waiter->deadline);
      const absl::Duration left = earliest - Clock::Real()->Elapsed();
      if (left > absl::ZeroDuration()) {
        mutex_.AwaitWithTimeout(absl::Condition(&waiters_changed_), left);
      }
      waiters_changed_ = false;
      const absl::Duration now = Clock::Real()->Elapsed();
      const auto in_time = [now](const std::shared_ptr<Waiter>& waiter) { return waiter->deadline > now; };
      const auto first_late = std::stable_partition(waiters_.begin(), waiters_.end(), in_time);
      for (auto waiter = first_late; waiter != waiters_.end(); ++waiter) {
        late.emplace_back(*waiter, DataBeingFetched(ProgressOf((*waiter)->parts)));
      }
      waiters_.erase(first_late, waiters_.end());
    }
    for (auto& [waiter, outcome] : late) waiter->finish(std::move(outcome));
  }
}

bool Fetcher::Sleep(absl::Duration duration) {
  MutexLock lock(&mutex_);
  return !mutex_.AwaitWithTimeout(absl::Condition(this, &Fetcher::IsStopping), duration);
}

bool Fetcher::IsFresh(const FetchItem& item) const {
  MutexLock lock(&mutex_);
  const auto checked = checked_.find(item.url_sha256());
  return checked != checked_.end() && options_.clock->Elapsed() - checked->second < options_.fresh;
}

}  // namespace tandem
