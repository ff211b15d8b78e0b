#include "client/cli/described_model.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/dataset_source.h"
#include "client/cli/job_reference.h"
#include "client/cli/job_source.h"
#include "client/cli/model_table.h"
#include "engine/base/spelling.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/job_file/scalar_text.h"

namespace tandem::cli {
namespace {

// Returns a job whose model is the template.
v1::JobSpec JobOfTemplate(const std::string& name) {
  v1::JobSpec spec;
  v1::ModelTemplate* model_template = spec.mutable_model()->mutable_template_();
  const auto* field = v1::ModelTemplate::descriptor()->FindFieldByName(name);
  model_template->GetReflection()->MutableMessage(model_template, field);
  return spec;
}

}  // namespace

std::vector<std::string> ModelTemplateNames() {
  std::vector<std::string> names;
  const auto* kind = v1::ModelTemplate::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < kind->field_count(); ++i) names.push_back(kind->field(i)->name());
  return names;
}

int DescribeModel(Session& session, const DescribedModel& wanted) {
  JobSource source{wanted.source, wanted.overrides};
  client::JobFile file;
  v1::DescribeModelRequest request;
  request.set_batch_size(wanted.batch_size);
  const bool is_template = absl::c_linear_search(ModelTemplateNames(), wanted.source);
  const bool is_file = NamesFile(wanted.source) && !absl::StartsWith(wanted.source, "jobs/");
  if (is_template || is_file) {
    if (is_template) {
      file.name = wanted.source;
      file.spec = JobOfTemplate(wanted.source);
      if (!ApplyOverrides(session, source, &file.spec)) return kBadUsage;
    } else {
      absl::optional<client::JobFile> read = ReadJob(session, source);
      if (!read.has_value()) return kBadUsage;
      file = *std::move(read);
    }
    *request.mutable_model() = file.spec.model();
    if (file.spec.has_dataset()) *request.mutable_dataset() = file.spec.dataset();
    if (wanted.batch_size == 0) request.set_batch_size(file.spec.training().global_batch_size());
  }
  if (!wanted.dataset.empty()) {
    absl::StatusOr<v1::DatasetSpec> dataset = FindDataset(wanted.dataset);
    if (!dataset.ok()) return session.Fail(dataset.status());
    *request.mutable_dataset() = *std::move(dataset);
  }
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  if (!request.has_model()) {
    const absl::StatusOr<v1::Job> job = FindJob(**client, wanted.source);
    if (absl::IsNotFound(job.status())) {
      return session.Fail(
          absl::NotFoundError(absl::StrCat("cannot find the model ", Quoted(wanted.source),
                                           ": no template, file or job has this name; of templates, ",
                                           SpellingHint(wanted.source, ModelTemplateNames()))));
    }
    if (!job.ok()) return session.Fail(job.status());
    if (!wanted.overrides.empty() || !wanted.dataset.empty()) {
      return session.Fail(absl::InvalidArgumentError(
          "cannot use --set and --dataset with a job: they change a template or a job file; leave them out"));
    }
    request.set_job(job->name());
    if (wanted.batch_size == 0) request.set_batch_size(job->spec().training().global_batch_size());
  }
  absl::StatusOr<v1::ModelDescription> description = (*client)->DescribeModel(request);
  if (!description.ok()) return FailJob(session, source, file, description.status());
  session.MakeShowable(&*description);
  session.terminal().Out(session.structured() ? Structured(session.options.output, *description)
                                              : ModelTable(*description, session.wide(), session.style()));
  return kSucceeded;
}

}  // namespace tandem::cli
