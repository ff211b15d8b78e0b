#ifndef TANDEM_SERVER_RPC_MODEL_TASK_H_
#define TANDEM_SERVER_RPC_MODEL_TASK_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/base/field_violations.h"
#include "server/admission/dataset_catalog.h"
#include "server/jobs/job_machine.h"
#include "server/rpc/local_data.h"
#include "server/scheduler/scheduler.h"
#include "tandem/internal/v1/model_task.pb.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/model_service.pb.h"

namespace tandem::rpc {

// The common part of Predict and Evaluate: the model `artifact` of the job `name`, and the device. Reads the
// database. NOT_FOUND and FAILED_PRECONDITION as the methods.
absl::StatusOr<internal::v1::ModelTask> MakeModelTask(const std::string& name, const std::string& artifact,
                                                      JobMachine* jobs, const Scheduler* scheduler);

// Checks the fields `dataset` and `split` of a request, without reading the data set.
void CheckSamples(const v1::DatasetSpec& dataset, v1::DatasetSplit split, FieldViolations& violations);

// Returns a request's data set with resolved paths. Fetches its URLs for `user`. Errors have fields below
// "dataset". May read every file of the data set, so call it on a thread of the users' pool.
absl::StatusOr<v1::DatasetSpec> ResolveDataset(const v1::DatasetSpec& dataset, const std::string& user,
                                               const DatasetCatalog* datasets, const LocalData* local_data);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_MODEL_TASK_H_
