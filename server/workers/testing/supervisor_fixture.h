#ifndef TANDEM_SERVER_WORKERS_TESTING_SUPERVISOR_FIXTURE_H_
#define TANDEM_SERVER_WORKERS_TESTING_SUPERVISOR_FIXTURE_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "gtest/gtest.h"
#include "server/events/event_hub.h"
#include "server/jobs/job_machine.h"
#include "server/store/eventually.h"
#include "server/store/store.h"
#include "server/store/temporary_folder.h"
#include "server/workers/supervisor.h"

namespace tandem {

// Returns true if the process has ended. A dead process that nobody reaped counts as ended.
bool IsGone(pid_t pid);

// The daemon's rooms up to the supervisor, with the test as scheduler. A job's name decides its fake worker's
// behaviour.
class SupervisingDaemon {
 public:
  SupervisingDaemon(const std::string& state_folder, const std::string& worker_program,
                    absl::Duration exit_grace, absl::Duration silence_limit, absl::Duration adoption_grace,
                    absl::Duration connect_grace);
  ~SupervisingDaemon();

  void Begin();

  // Creates a job with this many workers, one replica each.
  std::string Create(const std::string& behaviour, int workers = 1);
  v1::Job Schedule(const std::string& id);
  void Start(const v1::Job& job);
  // Creates a job with this behaviour and starts its worker.
  std::string Run(const std::string& behaviour, int workers = 1);

  void Cancel(const std::string& id);
  void Pause(const std::string& id);
  void Resume(const std::string& id);
  void Delete(const std::string& id);

  v1::Job Get(const std::string& id);
  bool WaitForState(const std::string& id, v1::JobState state);
  // Blocks until the job's lease is back, and returns the job.
  v1::Job WaitForEnd(const std::string& id);
  std::vector<std::string> Notices(const std::string& id);
  // Returns the pid of the job's live worker; 0 if none.
  pid_t WorkerPid(const std::string& id, int worker = 0);
  // Blocks until this daemon watches the workers that it found at its start: earlier ends go unseen.
  void WaitForAdoptions();

  // Returns "<job>/<attempt>" of the returned leases, with " crashed" if their workers crashed.
  std::vector<std::string> released();
  WorkerSupervisor& supervisor() { return *supervisor_; }

 private:
  std::unique_ptr<Store> store_;
  std::unique_ptr<EventHub> hub_;
  std::unique_ptr<JobMachine> jobs_;
  std::unique_ptr<WorkerSupervisor> supervisor_;
  Mutex mutex_;
  std::vector<std::string> released_ ABSL_GUARDED_BY(mutex_);
};

// Supervisors one after another on one state folder.
class SupervisorFixture : public testing::Test {
 protected:
  SupervisorFixture();
  ~SupervisorFixture() override;

  // Lets the next daemon take over.
  void Restart();

  // A short path, whatever TEST_TMPDIR is, with characters that a URI must escape.
  const TemporaryFolder scratch_{"/tmp/supervisor 100%_"};
  std::string state_folder_ = scratch_.path();
  std::string worker_program_;
  // Applies to the next daemon.
  absl::Duration exit_grace_ = absl::Milliseconds(300);
  absl::Duration silence_limit_ = absl::Seconds(30);
  absl::Duration adoption_grace_ = absl::ZeroDuration();
  absl::Duration connect_grace_ = absl::Minutes(5);
  std::unique_ptr<SupervisingDaemon> daemon_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_TESTING_SUPERVISOR_FIXTURE_H_
