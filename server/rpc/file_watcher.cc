#include "server/rpc/file_watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<FileWatcher>> FileWatcher::Create() {
  const int inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (inotify < 0) {
    return absl::InternalError(absl::StrCat("cannot watch files: ", strerror(errno),
                                            "; raise the limit fs.inotify.max_user_instances if need be"));
  }
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    const int error = errno;
    close(inotify);
    return absl::InternalError(absl::StrCat("cannot make an eventfd: ", strerror(error)));
  }
  return std::unique_ptr<FileWatcher>(new FileWatcher(inotify, wake));
}

FileWatcher::~FileWatcher() {
  const uint64_t one = 1;
  // Writing to an eventfd succeeds, because nobody else writes to it.
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
  thread_.join();
  close(inotify_);
  close(wake_);
}

absl::StatusOr<int64_t> FileWatcher::Add(const std::string& folder, const std::string& name,
                                         std::function<void()> changed) {
  MutexLock lock(&mutex_);
  // The same folder gives the same descriptor again.
  const int descriptor =
      inotify_add_watch(inotify_, folder.c_str(), IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_ONLYDIR);
  if (descriptor < 0) {
    const std::string message = absl::StrCat("cannot watch ", folder, ": ", strerror(errno));
    if (errno == ENOENT || errno == ENOTDIR) return absl::NotFoundError(message);
    if (errno == ENOSPC) {
      return absl::ResourceExhaustedError(
          absl::StrCat(message, "; raise the limit fs.inotify.max_user_watches"));
    }
    return absl::InternalError(message);
  }
  const int64_t number = next_number_++;
  watches_[number] = {descriptor, name, std::make_shared<std::function<void()>>(std::move(changed))};
  return number;
}

void FileWatcher::Remove(int64_t number) {
  Watch removed;
  {
    MutexLock lock(&mutex_);
    const auto found = watches_.find(number);
    if (found == watches_.end()) return;
    removed = std::move(found->second);
    watches_.erase(found);
    for (const auto& [other, watch] : watches_) {
      if (watch.descriptor == removed.descriptor) return;
    }
    inotify_rm_watch(inotify_, removed.descriptor);
  }
}

void FileWatcher::Run() {
  alignas(inotify_event) char buffer[16384];
  pollfd descriptors[2] = {{inotify_, POLLIN, 0}, {wake_, POLLIN, 0}};
  for (;;) {
    if (poll(descriptors, 2, -1) < 0 && errno != EINTR) return;
    if (descriptors[1].revents != 0) return;
    const ssize_t got = read(inotify_, buffer, sizeof(buffer));
    if (got <= 0) continue;
    std::vector<std::shared_ptr<std::function<void()>>> calls;
    {
      MutexLock lock(&mutex_);
      for (ssize_t at = 0; at < got;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
        const bool overflow = (event->mask & IN_Q_OVERFLOW) != 0;
        for (const auto& [number, watch] : watches_) {
          if (overflow || (watch.descriptor == event->wd && event->len > 0 && watch.name == event->name)) {
            calls.push_back(watch.changed);
          }
        }
      }
    }
    for (const auto& call : calls) (*call)();
  }
}

}  // namespace tandem
