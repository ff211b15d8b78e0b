#include <optional>
#include <string>
#include <utility>

#include "server/jobs/uploaded_weights.h"
#include "server/rpc/forked_folder.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {
namespace {

// The handler's dependencies.
struct Parts {
  JobMachine* jobs;
  const Lifecycle* lifecycle;
  const Admission* admission;
  const JobRequests* requests;
  FairPool* user_pool;
};

// The state of a fork before its job exists.
struct Fork {
  v1::Job from;
  ForkSource source;
  AdmittedRequest admitted;
};

// Creates the fork in the folder of the reserved `id`.
void Make(const Parts& parts, Fork fork, const std::string& id, Reply<v1::Job> reply) {
  const std::string folder = parts.jobs->FolderOf(id);
  // The source's worker may have been hijacked, so the checkpoint may have any size.
  const auto go_on = [&parts] { return parts.lifecycle->CheckServing(); };
  if (absl::Status status = MakeForkedFolder(fork.from, fork.source, folder, go_on); !status.ok()) {
    if (RemoveForkedFolder(folder)) parts.jobs->Release(id);
    return reply(std::move(status));
  }
  fork.admitted.job.reserved_id = id;
  std::string user = fork.admitted.job.user;
  parts.jobs->Create(std::move(fork.admitted.job),
                     [parts, user = std::move(user), id, folder, hold = std::move(fork.admitted.hold),
                      reply = std::move(reply)](absl::StatusOr<v1::Job> made) mutable {
                       if (made.ok() && made->folder() == folder) return reply(std::move(made));
                       // A concurrent request with the same id came first, or the creation failed.
                       parts.user_pool->Post(user, [jobs = parts.jobs, id, folder, made = std::move(made),
                                                    reply = std::move(reply)]() mutable {
                         if (RemoveForkedFolder(folder)) jobs->Release(id);
                         reply(std::move(made));
                       });
                     });
}

void MakeOrCheck(const Parts& parts, const v1::ForkJobRequest& request, Fork fork, Reply<v1::Job> reply) {
  JobMachine::NewJob& job = fork.admitted.job;
  const AdmittedJob admitted{.spec = job.spec};
  if (absl::Status fits = parts.admission->CheckCheckpoint(admitted, fork.source.header); !fits.ok()) {
    return reply(std::move(fits));
  }
  job.checkpoint = fork.source.checkpoint;
  job.forked_from.set_job(fork.from.name());
  job.forked_from.set_step(fork.source.checkpoint.step());
  job.is_step_given = request.has_step();
  if (request.validate_only()) {
    v1::Job made = MakeUnsubmitted(job);
    *made.mutable_forked_from() = job.forked_from;
    return reply(std::move(made));
  }
  if (absl::Status status = parts.lifecycle->CheckAcceptsJobs(); !status.ok()) {
    return reply(std::move(status));
  }
  job.submitted_spec = request.spec();
  job.request_id = request.request_id();
  JobMachine::NewJob reserving;
  reserving.spec.set_name(job.spec.name());
  reserving.user = job.user;
  reserving.max_queued_jobs = job.max_queued_jobs;
  parts.jobs->Reserve(reserving, [parts, fork = std::move(fork),
                                  reply = std::move(reply)](absl::StatusOr<std::string> id) mutable {
    if (!id.ok()) return reply(id.status());
    // Writes files.
    const std::string user = fork.admitted.job.user;
    parts.user_pool->Post(
        user, [parts, fork = std::move(fork), id = *std::move(id), reply = std::move(reply)]() mutable {
          Make(parts, std::move(fork), id, std::move(reply));
        });
  });
}

void Begin(const Parts& parts, const Caller& caller, const v1::ForkJobRequest& request, const std::string& id,
           Reply<v1::Job> reply) {
  if (absl::Status status = CheckKnownFields(request); !status.ok()) return reply(std::move(status));
  if (!request.request_id().empty() && !request.validate_only()) {
    v1::CheckpointSource wanted;
    wanted.set_job(request.name());
    wanted.set_step(request.step());
    absl::StatusOr<std::optional<v1::Job>> repeated = parts.jobs->FindRepeated(
        caller.user, request.request_id(), request.spec(), wanted, request.has_step());
    if (!repeated.ok()) return reply(repeated.status());
    if (repeated->has_value()) return reply(**std::move(repeated));
  }
  absl::StatusOr<v1::Job> from = parts.jobs->Get(id);
  if (!from.ok()) return reply(ExplainJobError(from.status(), request.name()));
  absl::StatusOr<ForkSource> source =
      FindForkSource(*from, request.has_step() ? std::optional<int64_t>(request.step()) : std::nullopt);
  if (!source.ok()) return reply(source.status());
  v1::JobSpec spec = request.has_spec() ? request.spec() : from->spec();
  // A fork starts from the checkpoint. The source's upload may be gone, or belong to another user. A URL
  // would be fetched for nothing.
  if (UploadedWeights(spec.initial_weights()).has_value() || IsUrl(spec.initial_weights().file()))
    spec.clear_initial_weights();
  // A small request may name a large job and checkpoint, and may wait for data.
  const int64_t kept = static_cast<int64_t>(from->SpaceUsedLong() + spec.SpaceUsedLong()) + BytesOf(*source) +
                       parts.requests->DataBytes(spec);
  if (!KeepMore(parts.user_pool, caller, kept, reply)) return;
  DataNames names = source->names;
  parts.requests->AdmitWithData(
      caller, spec,
      [parts, &request, from = *std::move(from), source = *std::move(source),
       reply = std::move(reply)](absl::StatusOr<AdmittedRequest> admitted) mutable {
        if (!admitted.ok()) return reply(admitted.status());
        MakeOrCheck(parts, request,
                    {.from = std::move(from), .source = std::move(source), .admitted = *std::move(admitted)},
                    std::move(reply));
      },
      std::move(names));
}

}  // namespace

void ForkJob(const Caller& caller, const v1::ForkJobRequest& request, Reply<v1::Job> reply, JobMachine* jobs,
             const Lifecycle* lifecycle, const Admission* admission, const JobRequests* requests,
             FairPool* user_pool) {
  const absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) return reply(id.status());
  if (absl::Status status = CheckSpecSize(request.spec()); !status.ok()) return reply(std::move(status));
  if (absl::Status status = CheckRequestId(request.request_id()); !status.ok()) {
    return reply(std::move(status));
  }
  const Parts parts{jobs, lifecycle, admission, requests, user_pool};
  PostFor(user_pool, caller, request, std::move(reply),
          [parts, caller, &request, id = *id](Reply<v1::Job> reply) {
            Begin(parts, caller, request, id, std::move(reply));
          });
}

}  // namespace tandem::rpc
