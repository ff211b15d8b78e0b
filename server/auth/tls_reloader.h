#ifndef TANDEM_SERVER_AUTH_TLS_RELOADER_H_
#define TANDEM_SERVER_AUTH_TLS_RELOADER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/auth/tls_files.h"

namespace tandem {

// Keeps up with TLS files that are replaced while the server runs, as certificates are before they expire:
// what is new is read when it has stood still for a moment, and counts for connections that are made from
// then on. What is wrong with it is logged, and the old keeps counting. Thread-safe, with a thread of its
// own.
class TlsReloader {
 public:
  struct Options {
    // Between two looks at the files; they are read when two looks saw the same.
    absl::Duration interval = absl::Seconds(1);
    // Between two words to the log about a certificate that clients refuse, or soon will.
    absl::Duration reminder = absl::Hours(24);
  };

  // How it stands.
  struct State {
    // Times that new content was taken.
    int64_t reloads = 0;
    // Times that new content was wrong.
    int64_t failures = 0;
    // The files are not what counts.
    bool failing = false;
    // Until when the certificate that counts is valid.
    absl::Time valid_until;
  };

  // As ReadTlsFiles.
  static absl::StatusOr<std::shared_ptr<TlsReloader>> Start(const TlsFiles& files, const Options& options);
  static absl::StatusOr<std::shared_ptr<TlsReloader>> Start(const TlsFiles& files) {
    return Start(files, Options());
  }
  ~TlsReloader();
  TlsReloader(const TlsReloader&) = delete;
  TlsReloader& operator=(const TlsReloader&) = delete;

  bool asks_clients() const { return !files_.client_ca.empty(); }
  // What counts now; another pointer for other content.
  std::shared_ptr<const TlsContent> current() const;
  State state() const;

 private:
  TlsReloader(const TlsFiles& files, const Options& options) : files_(files), options_(options) {}

  // What a file's change shows in.
  using Look = std::vector<int64_t>;
  Look LookAtFiles() const;
  void Run();
  void Reload();
  void Use(TlsContent content) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WarnOfTrouble() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TlsFiles files_;
  const Options options_;
  // Of what was read last, be it wrong; the thread's alone once it runs.
  Look read_;

  mutable Mutex mutex_;
  std::shared_ptr<const TlsContent> current_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_);
  // When it was last looked whether there is something to say, by Clock::Elapsed().
  absl::Duration warned_ ABSL_GUARDED_BY(mutex_);
  // The last one that was told.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_TLS_RELOADER_H_
