// Tests models over gRPC: descriptions by the engine, predictions and evaluations by a fake tandem-worker.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/admission/remote_data.h"
#include "server/rpc/service_fixture.h"
#include "server/rpc/status_details.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> FieldsOf(const grpc::Status& status) {
  std::vector<std::string> fields;
  const auto bad_request = DetailOf<google::rpc::BadRequest>(status);
  for (const auto& violation : bad_request.field_violations()) fields.push_back(violation.field());
  return fields;
}

class ModelServiceTest : public ServiceFixture {
 protected:
  // Creates an ended job with a model.
  std::string Trained() {
    std::string job = Create("lenet");
    workers_.AwaitStarted(Id(job));
    internal::v1::WorkerEvent artifact = MakeWorkerEvent(2);
    artifact.mutable_report()->mutable_artifact()->set_name("model.safetensors");
    Report(job, {Started(1), artifact});
    Finish(job, 3, v1::JOB_STATE_SUCCEEDED);
    return job;
  }

  static v1::PredictRequest PredictOf(const std::string& job, const std::vector<std::string>& labels) {
    v1::PredictRequest request;
    request.set_name(job);
    for (const std::string& label : labels) {
      v1::PredictInput& input = *request.add_inputs();
      input.set_label(label);
      input.set_csv("1");
    }
    return request;
  }

  struct Outcome {
    std::vector<std::string> inputs;
    grpc::Status status;
  };
  Outcome Predict(const v1::PredictRequest& request) {
    Outcome outcome;
    auto context = Context();
    auto reader = model_stub_->Predict(context.get(), request);
    for (v1::PredictResponse response; reader->Read(&response);) {
      for (const v1::Prediction& prediction : response.predictions())
        outcome.inputs.push_back(prediction.input());
    }
    outcome.status = reader->Finish();
    return outcome;
  }

  grpc::Status Evaluate(const v1::EvaluateRequest& request) {
    auto context = Context();
    auto reader = model_stub_->Evaluate(context.get(), request);
    for (v1::EvaluateResponse response; reader->Read(&response);) {
    }
    return reader->Finish();
  }
};

TEST_F(ModelServiceTest, DescribesATemplateForADataSet) {
  v1::DescribeModelRequest request;
  request.mutable_model()->mutable_template_()->mutable_mlp()->add_units(8);
  v1::SyntheticSource& data = *request.mutable_dataset()->mutable_synthetic();
  for (const int extent : {1, 4, 4}) data.add_shape(extent);
  data.set_classes(3);
  data.set_train_samples(8);
  v1::ModelDescription description;
  grpc::Status status = model_stub_->DescribeModel(Context().get(), request, &description);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(description.parameters(), 8 * 17 + 3 * 9);
  EXPECT_EQ(description.model().name(), "mlp");
  EXPECT_EQ(description.batch_size(), 1);

  request.set_batch_size(-1);
  status = model_stub_->DescribeModel(Context().get(), request, &description);
  EXPECT_THAT(FieldsOf(status), ElementsAre("batch_size"));
  request.clear_batch_size();
  request.mutable_model()->mutable_template_()->mutable_mlp()->add_units(0);
  status = model_stub_->DescribeModel(Context().get(), request, &description);
  EXPECT_THAT(FieldsOf(status), ElementsAre("model.template.mlp.units[1]"));
}

TEST_F(ModelServiceTest, DescribesWhatIsWrong) {
  v1::ModelDescription description;
  grpc::Status status = model_stub_->DescribeModel(Context().get(), {}, &description);
  EXPECT_THAT(FieldsOf(status), ElementsAre("model"));
  v1::DescribeModelRequest request;
  request.set_job("jobs/none");
  EXPECT_EQ(model_stub_->DescribeModel(Context().get(), request, &description).error_code(),
            StatusCode::NOT_FOUND);
  request.mutable_model()->mutable_input()->add_shape(4);
  request.mutable_model()->add_layers()->mutable_dense();
  status = model_stub_->DescribeModel(Context().get(), request, &description);
  EXPECT_THAT(FieldsOf(status), ElementsAre("model.layers[0].dense.units"));
}

// A cache, and a record of requests to the network behind it.
class FakeRemote : public RemoteData {
 public:
  void EnsureUrls(std::vector<FieldUrl>, const std::string&, absl::Duration, UrlsDone done) override {
    ++fetches;
    done(DataBeingFetched({}));
  }
  absl::StatusOr<std::string> LocalPath(const std::string& url, PathKind) const override {
    const auto found = cached.find(url);
    if (found == cached.end()) return absl::InvalidArgumentError("is not in the daemon's cache");
    return found->second;
  }
  void FetchPublicSet(const std::string&, const std::string&, absl::Duration,
                      absl::AnyInvocable<void(absl::Status)> done) override {
    ++fetches;
    done(DataBeingFetched({}));
  }

  std::atomic<int> fetches = 0;
  std::map<std::string, std::string> cached;  // Set before the server starts.
};

class RemoteDataTest : public ModelServiceTest {
 protected:
  void SetUp() override {
    const std::string table = ::testing::TempDir() + "/cached.csv";
    std::ofstream(table) << "a,b,label\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n";
    remote_data_.cached[kCached] = table;
    remote_ = &remote_data_;
    ModelServiceTest::SetUp();
  }

  // Describes a network for the table at `url`.
  static v1::DescribeModelRequest DescribeOf(const std::string& url) {
    v1::DescribeModelRequest request;
    request.mutable_model()->mutable_template_()->mutable_mlp()->add_units(8);
    request.mutable_dataset()->mutable_csv()->set_train(url);
    return request;
  }

  static constexpr char kCached[] = "https://example.com/cached.csv";
  static constexpr char kElsewhere[] = "https://example.com/elsewhere.csv";
  FakeRemote remote_data_;
};

TEST_F(RemoteDataTest, AViewerHasNothingFetched) {
  const std::string viewer = MakeToken("vic", v1::TOKEN_ROLE_VIEWER);
  v1::ModelDescription description;
  grpc::Status status =
      model_stub_->DescribeModel(Context(viewer).get(), DescribeOf(kElsewhere), &description);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_THAT(FieldsOf(status), ElementsAre("dataset.csv.train"));
  EXPECT_THAT(status.error_message(), HasSubstr("not in the daemon's cache"));
  status = model_stub_->DescribeModel(Context(viewer).get(), DescribeOf(kCached), &description);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(description.parameters(), 8 * 3 + 2 * 9);
  EXPECT_EQ(remote_data_.fetches, 0);

  const std::string submitter = MakeToken("sue", v1::TOKEN_ROLE_SUBMITTER);
  status = model_stub_->DescribeModel(Context(submitter).get(), DescribeOf(kElsewhere), &description);
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(remote_data_.fetches, 1);
}

TEST_F(ModelServiceTest, PassesPredictionsOn) {
  const Outcome outcome = Predict(PredictOf(Trained(), {"answer", "a", "b"}));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  EXPECT_THAT(outcome.inputs, ElementsAre("answer", "a", "b"));
}

TEST_F(ModelServiceTest, PassesErrorsOn) {
  const std::string job = Trained();
  EXPECT_EQ(Predict(PredictOf(job, {"fail"})).status.error_code(), StatusCode::FAILED_PRECONDITION);
  const grpc::Status violated = Predict(PredictOf(job, {"violate"})).status;
  EXPECT_EQ(violated.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(FieldsOf(violated), ElementsAre("inputs[0]"));
  EXPECT_EQ(Predict(PredictOf(job, {"die"})).status.error_code(), StatusCode::INTERNAL);
}

TEST_F(ModelServiceTest, RefusesWrongRequests) {
  const std::string job = Trained();
  EXPECT_THAT(FieldsOf(Predict(PredictOf("", {"answer"})).status), ElementsAre("name"));
  EXPECT_EQ(Predict(PredictOf("jobs/none", {"answer"})).status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(FieldsOf(Predict(PredictOf(job, {})).status), ElementsAre("inputs"));
  v1::PredictRequest request = PredictOf(job, {"answer"});
  request.mutable_inputs(0)->clear_csv();
  request.add_inputs()->set_label(std::string(513, 'x'));
  EXPECT_THAT(FieldsOf(Predict(request).status), ElementsAre("inputs[0]", "inputs[1]", "inputs[1].label"));
  request = PredictOf(job, {"answer"});
  request.set_top_k(-1);
  EXPECT_THAT(FieldsOf(Predict(request).status), ElementsAre("top_k"));
  request = PredictOf(job, {"answer"});
  request.mutable_inputs(0)->set_image(std::string(13 << 20, 'x'));
  EXPECT_EQ(Predict(request).status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  request = PredictOf(job, {"answer"});
  request.set_artifact("other.safetensors");
  const grpc::Status missing = Predict(request).status;
  EXPECT_EQ(missing.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(missing.error_message(), HasSubstr("model.safetensors"));
}

TEST_F(ModelServiceTest, ChecksPredictionsForADataSet) {
  const std::string job = Trained();
  v1::PredictRequest request = PredictOf(job, {"answer"});
  request.set_split(v1::DATASET_SPLIT_TRAINING);
  EXPECT_THAT(FieldsOf(Predict(request).status), ElementsAre("inputs"));
  request.clear_inputs();
  // The job's own data set, which this job lacks.
  EXPECT_THAT(FieldsOf(Predict(request).status), ElementsAre("dataset"));
  request.mutable_dataset()->set_name("none");
  EXPECT_THAT(FieldsOf(Predict(request).status), ElementsAre("dataset.name"));
  request.set_split(static_cast<v1::DatasetSplit>(9));
  request.mutable_dataset()->mutable_normalization();
  EXPECT_THAT(FieldsOf(Predict(request).status), ElementsAre("dataset.normalization", "split"));
  request = PredictOf(job, {});
  EXPECT_THAT(Predict(request).status.error_message(),
              HasSubstr("give at least one sample, or dataset or split"));
}

TEST_F(ModelServiceTest, ExportsAModel) {
  v1::ExportModelRequest request;
  const auto exported = [&](std::string* bytes) {
    auto context = Context();
    auto reader = model_stub_->ExportModel(context.get(), request);
    for (v1::ExportModelResponse response; reader->Read(&response);) *bytes += response.data();
    return reader->Finish();
  };
  std::string bytes;
  EXPECT_THAT(FieldsOf(exported(&bytes)), ElementsAre("name"));
  request.set_name("jobs/none");
  EXPECT_EQ(exported(&bytes).error_code(), StatusCode::NOT_FOUND);
  request.set_name(Trained());
  request.set_artifact("other.safetensors");
  EXPECT_EQ(exported(&bytes).error_code(), StatusCode::NOT_FOUND);
  request.clear_artifact();
  const grpc::Status status = exported(&bytes);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(bytes, "onnx");
}

TEST_F(ModelServiceTest, AJobWithoutAModelMayGetOne) {
  const std::string job = Create("lenet");
  const grpc::Status early = Predict(PredictOf(job, {"answer"})).status;
  EXPECT_EQ(early.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(early.error_message(), HasSubstr(": it has none yet"));
}

TEST_F(ModelServiceTest, ChecksEvaluations) {
  const std::string job = Trained();
  v1::EvaluateRequest request;
  request.set_name(job);
  request.mutable_dataset()->set_name("none");
  EXPECT_THAT(FieldsOf(Evaluate(request)), ElementsAre("dataset.name"));
  request.mutable_dataset()->mutable_normalization();
  request.set_batch_size(1 << 20);
  EXPECT_THAT(FieldsOf(Evaluate(request)), ElementsAre("batch_size", "dataset.normalization"));
  request.clear_batch_size();
  request.clear_dataset();
  // The job's own data set, which this job lacks.
  EXPECT_THAT(FieldsOf(Evaluate(request)), ElementsAre("dataset"));
}

TEST_F(ModelServiceTest, NeedsTheToken) {
  v1::ModelDescription description;
  EXPECT_EQ(model_stub_->DescribeModel(Context("wrong").get(), {}, &description).error_code(),
            StatusCode::UNAUTHENTICATED);
}

TEST_F(ModelServiceTest, AClientThatGoesAwayFreesItsProcess) {
  const std::string job = Trained();
  // As many as run at once, twice: the second round runs only after the first has ended.
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<grpc::ClientReader<v1::PredictResponse>>> readers;
    for (int i = 0; i < 2; ++i) {
      contexts.push_back(Context());
      readers.push_back(model_stub_->Predict(contexts.back().get(), PredictOf(job, {"flood"})));
      v1::PredictResponse response;
      EXPECT_TRUE(readers.back()->Read(&response));
    }
    for (const auto& context : contexts) context->TryCancel();
    for (const auto& reader : readers) EXPECT_EQ(reader->Finish().error_code(), StatusCode::CANCELLED);
  }
  EXPECT_TRUE(Predict(PredictOf(job, {"answer"})).status.ok());
}

}  // namespace
}  // namespace tandem
