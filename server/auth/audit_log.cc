#include "server/auth/audit_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "third_party/spdlog/log.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const Options& options, Env* env,
                                                         const Clock* clock) {
  std::unique_ptr<AuditLog> log(new AuditLog(options, env, clock));
  // On a full disk, the log waits for room, also later.
  if (absl::Status status = log->OpenFile(); !status.ok() && !absl::IsResourceExhausted(status))
    return status;
  log->thread_ = std::thread([log = log.get()] { log->Run(); });
  return log;
}

AuditLog::AuditLog(const Options& options, Env* env, const Clock* clock)
    : options_(options),
      env_(env),
      clock_(clock),
      budget_(options.refused_at_once, options.refused_a_second) {}

AuditLog::~AuditLog() { Close(); }

void AuditLog::Add(AuditRecord record) {
  MutexLock lock(&mutex_);
  Push(std::move(record));
}

bool AuditLog::AddRefused(AuditRecord record) {
  MutexLock lock(&mutex_);
  if (!budget_.Take(record.user, clock_->Elapsed())) return false;
  PushLeftOut(record.user, budget_.TakeLeftOut(record.user));
  Push(std::move(record));
  return true;
}

void AuditLog::Push(AuditRecord record) {
  if (stopping_) return;
  if (state_.waiting >= options_.most_waiting) {
    ++state_.lost;
    ++untold_;
    return;
  }
  if (record.time == absl::InfinitePast()) record.time = clock_->Now();
  waiting_.push_back(std::move(record));
  ++state_.waiting;
}

void AuditLog::PushLeftOut(const std::string& user, int64_t count) {
  if (count == 0) return;
  AuditRecord record;
  record.event = "left_out";
  record.user = user;
  record.count = count;
  Push(std::move(record));
}

void AuditLog::Close() {
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    for (const auto& [user, count] : budget_.TakeAllLeftOut()) PushLeftOut(user, count);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

AuditLog::State AuditLog::state() const {
  MutexLock lock(&mutex_);
  return state_;
}

void AuditLog::Run() {
  while (true) {
    std::deque<AuditRecord> batch;
    bool last = false;
    int64_t told = 0;
    {
      MutexLock lock(&mutex_);
      if (state_.failing) {
        mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.retry_interval);
      } else {
        mutex_.Await(absl::Condition(this, &AuditLog::HasWork));
      }
      last = stopping_;
      batch.swap(waiting_);
      told = untold_;
      if (told > 0) {
        AuditRecord lost;
        lost.event = "lost";
        lost.time = clock_->Now();
        lost.count = told;
        batch.push_back(std::move(lost));
      }
    }
    const int64_t count = static_cast<int64_t>(batch.size());
    const absl::Status status = WriteAll(&batch);
    MutexLock lock(&mutex_);
    const int64_t written = count - static_cast<int64_t>(batch.size());
    state_.written += written;
    // The record of lost records is the last of the batch. If it was not written, the next round makes a new
    // one.
    if (told > 0 && batch.empty()) untold_ -= told;
    if (told > 0 && !batch.empty()) batch.pop_back();
    const bool was_failing = std::exchange(state_.failing, !status.ok());
    waiting_.insert(waiting_.begin(), std::make_move_iterator(batch.begin()),
                    std::make_move_iterator(batch.end()));
    state_.waiting = static_cast<int64_t>(waiting_.size());
    if (!status.ok() && !was_failing) {
      spdlog::error("cannot write the audit log, so records wait in memory: {}", status.ToString());
    } else if (status.ok() && was_failing) {
      spdlog::warn("the audit log can be written again, lost records={}", state_.lost);
    }
    if (!last) continue;
    if (!waiting_.empty())
      spdlog::error("lost audit records={}: the daemon is shutting down, and they could not be written",
                    waiting_.size());
    return;
  }
}

absl::Status AuditLog::WriteAll(std::deque<AuditRecord>* records) {
  while (!records->empty()) {
    TANDEM_RETURN_IF_ERROR(Append(records->front().ToLine()));
    records->pop_front();
  }
  return file_ == nullptr ? absl::OkStatus() : file_->Sync();
}

absl::Status AuditLog::Append(const std::string& line) {
  if (file_ == nullptr) TANDEM_RETURN_IF_ERROR(OpenFile());
  if (size_ > 0 && size_ + static_cast<int64_t>(line.size()) > options_.most_bytes)
    TANDEM_RETURN_IF_ERROR(Rotate());
  // End a truncated line first, so that the next line stays readable.
  const std::string text = torn_ ? absl::StrCat("\n", line) : line;
  if (absl::Status status = file_->Append(text); !status.ok()) {
    // OpenFile finds out how much of the line reached the disk.
    file_ = nullptr;
    return status;
  }
  torn_ = false;
  size_ += static_cast<int64_t>(text.size());
  return absl::OkStatus();
}

absl::Status AuditLog::OpenFile() {
  const absl::StatusOr<std::string> content = env_->ReadFile(Path(0));
  if (!content.ok() && !absl::IsNotFound(content.status())) return content.status();
  absl::StatusOr<std::unique_ptr<WritableFile>> file =
      content.ok() ? env_->AppendToFile(Path(0)) : env_->CreateFile(Path(0));
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  size_ = content.ok() ? static_cast<int64_t>(content->size()) : 0;
  torn_ = size_ > 0 && content->back() != '\n';
  // Make the file's name durable before its content matters.
  return content.ok() ? absl::OkStatus() : env_->SyncDirectory(options_.folder);
}

absl::Status AuditLog::Rotate() {
  TANDEM_RETURN_IF_ERROR(file_->Sync());
  // Rename from the oldest on. A failed earlier rotation may have left a gap, so a missing file is no error.
  for (int number = options_.kept; number >= 0; --number) {
    const absl::Status status = number == options_.kept ? env_->RemoveFile(Path(number))
                                                        : env_->RenameFile(Path(number), Path(number + 1));
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  file_ = nullptr;
  return OpenFile();
}

std::string AuditLog::Path(int number) const {
  const std::string path = absl::StrCat(options_.folder, "/audit.log");
  return number == 0 ? path : absl::StrCat(path, ".", number);
}

}  // namespace tandem
