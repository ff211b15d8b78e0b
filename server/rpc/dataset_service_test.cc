#include <grpcpp/create_channel.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "server/admission/remote_data.h"
#include "server/datasets/sample_upload.h"
#include "server/rpc/service_fixture.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class DatasetServiceTest : public ServiceFixture {
 protected:
  v1::Upload Begin(const SampleUpload& sample) {
    v1::CreateUploadRequest request;
    *request.mutable_upload() = sample.Declaration();
    v1::Upload upload;
    const grpc::Status status = dataset_stub_->CreateUpload(Context().get(), request, &upload);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return upload;
  }

  // Sends the pieces in one call. If `breaks`, breaks off the call after them.
  grpc::Status Send(const std::string& name, std::vector<v1::UploadFilesRequest> pieces, v1::Upload* upload,
                    bool breaks = false, const std::string& token = kToken) {
    const std::unique_ptr<grpc::ClientContext> context = Context(token);
    auto writer = dataset_stub_->UploadFiles(context.get(), upload);
    if (!pieces.empty()) pieces[0].set_name(name);
    for (const v1::UploadFilesRequest& piece : pieces) {
      if (!writer->Write(piece)) break;
    }
    if (breaks) {
      context->TryCancel();
    } else {
      writer->WritesDone();
    }
    return writer->Finish();
  }

  const SampleUpload houses_{SampleUpload::OneFile("houses.csv", "size,price\n1,2\n3,4\n5,6\n")};
};

TEST_F(DatasetServiceTest, UploadsRegistersAndRemoves) {
  v1::Upload upload = Begin(houses_);
  grpc::Status status = Send(upload.name(), houses_.Pieces(upload), &upload);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(upload.files_received(), 1);

  v1::CreateDatasetRequest request;
  request.set_dataset_id("houses");
  request.set_upload(upload.name());
  request.set_request_id("r1");
  request.mutable_dataset()->mutable_spec()->mutable_csv()->set_train("houses.csv");
  for (int i = 0; i < 2; ++i) {
    v1::Dataset dataset;
    status = dataset_stub_->CreateDataset(Context().get(), request, &dataset);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(dataset.train_samples(), 3);
  }
  request.set_request_id("r2");
  v1::Dataset other;
  EXPECT_EQ(dataset_stub_->CreateDataset(Context().get(), request, &other).error_code(),
            grpc::StatusCode::ALREADY_EXISTS);
  v1::ListDatasetsResponse list;
  ASSERT_TRUE(daemon_stub_->ListDatasets(Context().get(), {}, &list).ok());
  EXPECT_EQ(list.datasets_size(), 2);  // And Fashion-MNIST.

  v1::DeleteDatasetRequest removal;
  removal.set_name("datasets/houses");
  google::protobuf::Empty empty;
  EXPECT_TRUE(dataset_stub_->DeleteDataset(Context().get(), removal, &empty).ok());
  EXPECT_EQ(dataset_stub_->DeleteDataset(Context().get(), removal, &empty).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(DatasetServiceTest, SetsAndUploadsAreTheirOwners) {
  const std::string ann = MakeToken("ann");
  const std::string bob = MakeToken("bob");
  v1::CreateUploadRequest begin;
  *begin.mutable_upload() = houses_.Declaration();
  v1::Upload upload, others;
  ASSERT_TRUE(dataset_stub_->CreateUpload(Context(ann).get(), begin, &upload).ok());
  EXPECT_EQ(upload.user(), "ann");
  // The same files of another user are another upload.
  ASSERT_TRUE(dataset_stub_->CreateUpload(Context(bob).get(), begin, &others).ok());
  EXPECT_NE(others.name(), upload.name());

  v1::DeleteUploadRequest forget;
  forget.set_name(upload.name());
  google::protobuf::Empty empty;
  EXPECT_EQ(dataset_stub_->DeleteUpload(Context(bob).get(), forget, &empty).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  v1::Upload sent;
  EXPECT_EQ(Send(upload.name(), houses_.Pieces(upload), &sent, /*breaks=*/false, bob).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(Send(upload.name(), houses_.Pieces(upload), &sent, /*breaks=*/false, ann).ok());

  v1::CreateDatasetRequest request;
  request.set_dataset_id("houses");
  request.set_upload(upload.name());
  request.mutable_dataset()->mutable_spec()->mutable_csv()->set_train("houses.csv");
  v1::Dataset dataset;
  EXPECT_EQ(dataset_stub_->CreateDataset(Context(bob).get(), request, &dataset).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  const grpc::Status made = dataset_stub_->CreateDataset(Context(ann).get(), request, &dataset);
  ASSERT_TRUE(made.ok()) << made.error_message();
  EXPECT_EQ(dataset.user(), "ann");

  v1::DeleteDatasetRequest removal;
  removal.set_name("datasets/houses");
  const grpc::Status refused = dataset_stub_->DeleteDataset(Context(bob).get(), removal, &empty);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("it belongs to \"ann\""));
  EXPECT_TRUE(dataset_stub_->DeleteDataset(Context(ann).get(), removal, &empty).ok());
  EXPECT_EQ(dataset_stub_->DeleteDataset(Context(bob).get(), removal, &empty).error_code(),
            grpc::StatusCode::NOT_FOUND);
  // An administrator may remove any upload.
  forget.set_name(others.name());
  EXPECT_TRUE(dataset_stub_->DeleteUpload(Context().get(), forget, &empty).ok());
}

TEST_F(DatasetServiceTest, ASetWithoutAnOwnerIsTheAdministrators) {
  StoredDataset unowned;
  unowned.dataset.set_name("datasets/unowned");
  registry_->Restore({unowned});
  const std::string ann = MakeToken("ann");
  google::protobuf::Empty empty;
  const grpc::Status refused =
      dataset_stub_->DeleteDataset(Context(ann).get(), Named<v1::DeleteDatasetRequest>("unowned"), &empty);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("has no owner"));
}

TEST_F(DatasetServiceTest, WhatCameBeforeABreakIsKept) {
  const std::string content(3 << 20, 'x');
  const SampleUpload large = SampleUpload::OneFile("large", content);
  v1::Upload upload = Begin(large);
  auto pieces = large.Pieces(upload, 1 << 18);
  pieces.resize(6);
  EXPECT_EQ(Send(upload.name(), pieces, &upload, /*breaks=*/true).error_code(), grpc::StatusCode::CANCELLED);
  // Data in flight may be lost. The beginning of the file stays the same file's.
  v1::GetUploadRequest get;
  get.set_name(upload.name().empty() ? Begin(large).name() : upload.name());
  grpc::Status status;
  // The daemon may still be writing earlier pieces. If it reports more than before, ask again.
  do {
    ASSERT_TRUE(dataset_stub_->GetUpload(Context().get(), get, &upload).ok());
    EXPECT_EQ(upload.files_received(), 0);
    EXPECT_EQ(upload.bytes_received(), upload.next_offset());
    status = Send(get.name(), large.Pieces(upload, 1 << 18), &upload);
  } while (status.error_code() == grpc::StatusCode::ABORTED);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(upload.files_received(), 1);
}

TEST_F(DatasetServiceTest, RefusesWhatIsWrong) {
  v1::Upload upload = Begin(houses_);
  const std::string name = upload.name();
  EXPECT_EQ(Send("", houses_.Pieces(upload), &upload).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Send("uploads/0123456789abcdef", houses_.Pieces(houses_.Declaration()), &upload).error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Send(name, {}, &upload).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  auto damaged = houses_.Pieces(houses_.Declaration());
  damaged.back().mutable_data()->back() ^= 1;
  const grpc::Status status = Send(name, damaged, &upload);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(), HasSubstr("houses.csv"));
  auto dense = houses_.Pieces(houses_.Declaration());
  google::protobuf::UnknownFieldSet* unknown = dense[0].GetReflection()->MutableUnknownFields(&dense[0]);
  for (int i = 0; i < 1000; ++i) unknown->AddVarint(15, 0);
  const grpc::Status many = Send(name, dense, &upload);
  EXPECT_EQ(many.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(many.error_message(), HasSubstr("more than 1000 fields"));
  auto outside = houses_.Pieces(houses_.Declaration());
  outside[0].mutable_file()->set_path("../../tandem.db");
  EXPECT_EQ(Send(name, outside, &upload).error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  v1::CreateUploadRequest request;
  *request.mutable_upload() = houses_.Declaration();
  request.mutable_upload()->set_bytes(kMostUploadBytes + 1);
  EXPECT_EQ(dataset_stub_->CreateUpload(Context().get(), request, &upload).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);

  v1::DeleteUploadRequest removal;
  google::protobuf::Empty empty;
  EXPECT_EQ(dataset_stub_->DeleteUpload(Context().get(), removal, &empty).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  removal.set_name(name);
  EXPECT_TRUE(dataset_stub_->DeleteUpload(Context().get(), removal, &empty).ok());
  v1::ListUploadsResponse list;
  ASSERT_TRUE(dataset_stub_->ListUploads(Context().get(), {}, &list).ok());
  EXPECT_EQ(list.uploads_size(), 0);
}

TEST_F(DatasetServiceTest, NeedsTheToken) {
  v1::Upload upload;
  const std::unique_ptr<grpc::ClientContext> context = Context("");
  auto writer = dataset_stub_->UploadFiles(context.get(), &upload);
  writer->WritesDone();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

// Ends each fetch with the status that the test sets.
class FakeRemote : public RemoteData {
 public:
  void EnsureUrls(std::vector<FieldUrl>, const std::string&, absl::Duration, UrlsDone done) override {
    done(absl::UnimplementedError("not here"));
  }
  absl::StatusOr<std::string> LocalPath(const std::string&, PathKind) const override {
    return absl::InvalidArgumentError("is not in the daemon's cache");
  }
  void FetchPublicSet(const std::string& name, const std::string& user, absl::Duration,
                      absl::AnyInvocable<void(absl::Status)> done) override {
    fetched.push_back(user + " " + name);
    done(result);
  }

  absl::Status result;
  std::vector<std::string> fetched;
};

class FetchDatasetTest : public DatasetServiceTest {
 protected:
  void SetUp() override {
    remote_ = &remote_data_;
    DatasetServiceTest::SetUp();
  }

  grpc::Status Fetch(const std::string& name, v1::Dataset* dataset) {
    return dataset_stub_->FetchDataset(Context().get(), Named<v1::FetchDatasetRequest>(name), dataset);
  }

  FakeRemote remote_data_;
};

TEST_F(FetchDatasetTest, TellsTheProgressUntilTheSetIsThere) {
  remote_data_.result =
      DataBeingFetched({.bytes_done = 3, .bytes_total = 7, .files_done = 1, .files_total = 4});
  v1::Dataset dataset;
  const grpc::Status status = Fetch("datasets/mnist", &dataset);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(dataset.name(), "datasets/mnist");
  EXPECT_EQ(dataset.state(), v1::DATASET_STATE_FETCHING);
  EXPECT_EQ(dataset.origin(), v1::DATASET_ORIGIN_FETCHED);
  EXPECT_EQ(dataset.fetch().bytes_done(), 3);
  EXPECT_EQ(dataset.fetch().bytes_total(), 7);
  EXPECT_EQ(dataset.fetch().files_done(), 1);
  EXPECT_EQ(dataset.fetch().files_total(), 4);
  EXPECT_THAT(remote_data_.fetched, ::testing::ElementsAre("admin mnist"));
}

TEST_F(FetchDatasetTest, PassesErrorsOn) {
  v1::Dataset dataset;
  EXPECT_EQ(Fetch("", &dataset).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Fetch("datasets/", &dataset).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(remote_data_.fetched.empty());
  remote_data_.result = absl::NotFoundError("no such public set");
  const grpc::Status unknown = Fetch("nothing", &dataset);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(unknown.error_message(), HasSubstr("no such public set"));
  // The fetch succeeded, and the catalog still lacks the set.
  remote_data_.result = absl::OkStatus();
  EXPECT_EQ(Fetch("mnist", &dataset).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(FetchDatasetTest, FetchesNoSetThatIsThere) {
  v1::Upload upload = Begin(houses_);
  ASSERT_TRUE(Send(upload.name(), houses_.Pieces(upload), &upload).ok());
  v1::CreateDatasetRequest request;
  request.set_dataset_id("houses");
  request.set_upload(upload.name());
  request.mutable_dataset()->mutable_spec()->mutable_csv()->set_train("houses.csv");
  v1::Dataset dataset;
  ASSERT_TRUE(dataset_stub_->CreateDataset(Context().get(), request, &dataset).ok());
  v1::Dataset there;
  const grpc::Status status = Fetch("houses", &there);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(there.train_samples(), 3);
  EXPECT_NE(there.state(), v1::DATASET_STATE_FETCHING);
  EXPECT_TRUE(remote_data_.fetched.empty());
}

TEST_F(DatasetServiceTest, ADaemonThatFetchesNothingSaysSo) {
  v1::Dataset dataset;
  const grpc::Status status =
      dataset_stub_->FetchDataset(Context().get(), Named<v1::FetchDatasetRequest>("mnist"), &dataset);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_details(), HasSubstr("FETCH_NOT_ALLOWED"));
}

// A stopping daemon ends upload calls and keeps their data.
TEST_F(DatasetServiceTest, StoppingEndsUploads) {
  const SampleUpload large = SampleUpload::OneFile("large", std::string(1 << 20, 'x'));
  v1::Upload upload = Begin(large);
  const std::string name = upload.name();
  auto pieces = large.Pieces(upload, 1 << 18);
  pieces[0].set_name(name);
  const std::unique_ptr<grpc::ClientContext> context = Context();
  auto writer = dataset_stub_->UploadFiles(context.get(), &upload);
  ASSERT_TRUE(writer->Write(pieces[0]));
  v1::Upload taken;
  while (taken.bytes_received() == 0) {
    ASSERT_TRUE(dataset_stub_->GetUpload(Context().get(), Named<v1::GetUploadRequest>(name), &taken).ok());
  }
  lifecycle_.Stop();
  server_->Stop(absl::Seconds(2));
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace tandem
