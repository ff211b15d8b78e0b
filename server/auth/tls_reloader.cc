#include "server/auth/tls_reloader.h"

#include <sys/stat.h>

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/status_macros.h"
#include "server/auth/certificate_validity.h"
#include "third_party/spdlog/log.h"

namespace tandem {
absl::StatusOr<std::shared_ptr<TlsReloader>> TlsReloader::Start(const TlsFiles& files,
                                                                const Options& options) {
  std::shared_ptr<TlsReloader> reloader(new TlsReloader(files, options));
  // Look before reading, so that the next look sees a change during the reading.
  reloader->read_ = reloader->LookAtFiles();
  TANDEM_ASSIGN_OR_RETURN(TlsContent content, ReadTlsFiles(files));
  {
    MutexLock lock(&reloader->mutex_);
    reloader->Use(std::move(content));
  }
  reloader->thread_ = std::thread([reloader = reloader.get()] { reloader->Run(); });
  return reloader;
}

void TlsReloader::Use(TlsContent content) {
  state_.valid_until = content.validity.end;
  current_ = std::make_shared<const TlsContent>(std::move(content));
  WarnOfTrouble();
}

void TlsReloader::WarnOfTrouble() {
  warned_ = Clock::Real()->Elapsed();
  if (const auto trouble = TroubleOf(current_->validity, absl::Now()); trouble.has_value()) {
    spdlog::warn("the TLS certificate {}; the daemon reads a new file without a restart", trouble->text);
  }
}

TlsReloader::~TlsReloader() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const TlsContent> TlsReloader::current() const {
  MutexLock lock(&mutex_);
  return current_;
}

TlsReloader::State TlsReloader::state() const {
  MutexLock lock(&mutex_);
  return state_;
}

TlsReloader::Look TlsReloader::LookAtFiles() const {
  Look look;
  for (const std::string& path : {files_.certificate, files_.key, files_.client_ca}) {
    struct stat info = {};
    // Follow symbolic links, because a link's target may be replaced as well. A missing file counts as a
    // change.
    if (path.empty() || stat(path.c_str(), &info) != 0) info = {};
    for (const int64_t one :
         {static_cast<int64_t>(info.st_dev), static_cast<int64_t>(info.st_ino),
          static_cast<int64_t>(info.st_size), static_cast<int64_t>(info.st_mode),
          static_cast<int64_t>(info.st_mtim.tv_sec), static_cast<int64_t>(info.st_mtim.tv_nsec),
          static_cast<int64_t>(info.st_ctim.tv_sec), static_cast<int64_t>(info.st_ctim.tv_nsec)}) {
      look.push_back(one);
    }
  }
  return look;
}

void TlsReloader::Run() {
  Look last = read_;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.interval)) return;
      // Remind of a bad certificate, because the daemon may run for months.
      if (Clock::Real()->Elapsed() - warned_ >= options_.reminder) WarnOfTrouble();
    }
    Look now = LookAtFiles();
    // Certificate and key are two files. Between their replacements they do not fit.
    const bool stands_still = now == last;
    last = now;
    // After a temporary read error, unchanged files may be valid.
    if (!stands_still || (now == read_ && !state().failing)) continue;
    read_ = std::move(now);
    Reload();
  }
}

void TlsReloader::Reload() {
  absl::StatusOr<TlsContent> content = ReadTlsFiles(files_);
  MutexLock lock(&mutex_);
  state_.failing = !content.ok();
  if (!content.ok()) {
    if (content.status() == failure_) return;
    failure_ = content.status();
    ++state_.failures;
    spdlog::error("cannot use the new TLS files, so the old ones stay in use (valid until {}): {}",
                  ShownTime(state_.valid_until), std::string(content.status().message()));
    return;
  }
  failure_ = absl::OkStatus();
  ++state_.reloads;
  spdlog::info("the TLS files changed, new connections use them; the certificate is valid until {}",
               ShownTime(content->validity.end));
  Use(*std::move(content));
}

}  // namespace tandem
