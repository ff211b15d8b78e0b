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

// Reloads TLS files that are replaced while the server runs, for example before a certificate expires. Reads
// new files after two equal looks, and uses their content for new connections. If the new content is wrong,
// logs the error and keeps the old content. Thread-safe; has its own thread.
class TlsReloader {
 public:
  struct Options {
    // The time between two looks at the files. Two equal looks trigger a reading.
    absl::Duration interval = absl::Seconds(1);
    // The time between two log lines about a certificate that clients refuse or will soon refuse.
    absl::Duration reminder = absl::Hours(24);
  };

  // Counts since Start.
  struct State {
    // Accepted reloads.
    int64_t reloads = 0;
    // Refused reloads.
    int64_t failures = 0;
    // True if the files differ from the content in use.
    bool failing = false;
    // The end of validity of the certificate in use.
    absl::Time valid_until;
  };

  // Errors as ReadTlsFiles.
  static absl::StatusOr<std::shared_ptr<TlsReloader>> Start(const TlsFiles& files, const Options& options);
  static absl::StatusOr<std::shared_ptr<TlsReloader>> Start(const TlsFiles& files) {
    return Start(files, Options());
  }
  ~TlsReloader();
  TlsReloader(const TlsReloader&) = delete;
  TlsReloader& operator=(const TlsReloader&) = delete;

  bool asks_clients() const { return !files_.client_ca.empty(); }
  // Returns the content in use. A reload changes the pointer.
  std::shared_ptr<const TlsContent> current() const;
  State state() const;

 private:
  TlsReloader(const TlsFiles& files, const Options& options) : files_(files), options_(options) {}

  // The file attributes that show a change.
  using Look = std::vector<int64_t>;
  Look LookAtFiles() const;
  void Run();
  void Reload();
  void Use(TlsContent content) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WarnOfTrouble() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TlsFiles files_;
  const Options options_;
  // The look before the last reading, valid or not. Only the thread uses it once it runs.
  Look read_;

  mutable Mutex mutex_;
  std::shared_ptr<const TlsContent> current_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_);
  // The time of the last check for a reminder, by Clock::Elapsed().
  absl::Duration warned_ ABSL_GUARDED_BY(mutex_);
  // The last logged error.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_TLS_RELOADER_H_
