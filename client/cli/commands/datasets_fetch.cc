#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/datasets_fetch.h"
#include "client/cli/format.h"

namespace tandem::cli {

int FetchKnownDataset(Session& session, const std::string& name) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<v1::Dataset> dataset = (*client)->FetchDataset(name);
  if (!dataset.ok()) return session.Fail(dataset.status());
  session.MakeShowable(&*dataset);
  if (session.structured()) {
    session.Print(*dataset);
  } else if (dataset->state() == v1::DATASET_STATE_FETCHING) {
    session.terminal().Err(
        absl::StrCat("tandem: the daemon still fetches the data set; the same command waits again: tandem "
                     "datasets fetch ",
                     name, "\n"));
  } else {
    session.terminal().Out(absl::StrCat(
        session.style().Bold(name), " is ready: ", FormatCount(dataset->train_samples()), " training and ",
        FormatCount(dataset->validation_samples()), " validation samples in ", dataset->location(), "\n"));
  }
  return dataset->state() == v1::DATASET_STATE_FETCHING ? kDetached : kSucceeded;
}

void AddDatasetsFetch(Command datasets, Session& session, int& exit_code) {
  const Command command = datasets.AddCommand(
      "fetch", "Let the daemon download a public data set (mnist, fashion-mnist, cifar-10, cifar-100)");
  auto name = std::make_shared<std::string>();
  command.AddOption("NAME", *name, "The data set").Required();
  command.Action([name, &session, &exit_code] { exit_code = FetchKnownDataset(session, *name); });
}

}  // namespace tandem::cli
