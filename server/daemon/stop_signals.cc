#include "server/daemon/stop_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace tandem {

StopSignals::StopSignals(std::function<void(const char*)> stop) : stop_(std::move(stop)) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  thread_ = std::thread([this] { Run(); });
}

StopSignals::~StopSignals() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
  thread_.join();
  close(signals_);
  close(wake_);
}

void StopSignals::Run() {
  pollfd descriptors[2] = {{signals_, POLLIN, 0}, {wake_, POLLIN, 0}};
  for (;;) {
    if (poll(descriptors, 2, -1) < 0 && errno != EINTR) return;
    if (descriptors[1].revents != 0) return;
    signalfd_siginfo info;
    if (read(signals_, &info, sizeof(info)) != sizeof(info)) continue;
    stop_(info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
  }
}

}  // namespace tandem
