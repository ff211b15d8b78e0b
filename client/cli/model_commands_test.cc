#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/app_fixture.h"
#include "client/cli/model_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// Commands on models, with a daemon that gives the test's answers.
class ModelCommandsTest : public AppFixture {
 protected:
  ModelCommandsTest() {
    daemon_.list_jobs = [](const v1::ListJobsRequest&, v1::ListJobsResponse* response) {
      response->add_jobs()->set_name("jobs/lenet-1");
      return grpc::Status::OK;
    };
    daemon_.get_job = [](const v1::GetJobRequest& request, v1::Job* job) -> grpc::Status {
      if (request.name() != "jobs/lenet-1") return {grpc::StatusCode::NOT_FOUND, "no job " + request.name()};
      job->set_name("jobs/lenet-1");
      job->mutable_spec()->mutable_training()->set_global_batch_size(64);
      return grpc::Status::OK;
    };
  }

  // Keeps the request, and describes a network with a single layer.
  void Describe() {
    daemon_.describe_model = [this](const v1::DescribeModelRequest& request, v1::ModelDescription* response) {
      described_ = request;
      response->mutable_model()->set_name("lenet");
      for (const int extent : {1, 28, 28}) response->mutable_model()->mutable_input()->add_shape(extent);
      v1::LayerDescription* layer = response->add_layers();
      layer->set_name("conv2d_1");
      layer->set_kind("conv2d");
      layer->add_inputs("input");
      for (const int extent : {20, 24, 24}) layer->add_output_shape(extent);
      layer->set_parameters(520);
      layer->set_operations(587520);
      response->set_parameters(520);
      response->set_operations(1234567890);
      response->set_batch_size(1);
      return grpc::Status::OK;
    };
  }

  v1::DescribeModelRequest described_;
};

TEST_F(ModelCommandsTest, DescribesATemplate) {
  Describe();
  EXPECT_EQ(
      Run({"describe", "--model", "lenet", "--set", "model.template.lenet.width=2", "--dataset", "mnist"}),
      0);
  EXPECT_EQ(described_.model().template_().lenet().width(), 2);
  EXPECT_EQ(described_.dataset().name(), "mnist");
  EXPECT_THAT(terminal_.out(), HasSubstr("lenet of samples 1x28x28\n"));
  EXPECT_THAT(terminal_.out(), HasSubstr("conv2d_1"));
  EXPECT_THAT(terminal_.out(), HasSubstr("20x24x24"));
  EXPECT_THAT(terminal_.out(), HasSubstr("1.23 G"));
}

TEST_F(ModelCommandsTest, DescribesAJobFileAndAJob) {
  Describe();
  const std::string file = Write("job.yaml",
                                 "dataset: {name: mnist}\nmodel: {template: {mlp: {units: [3]}}}\n"
                                 "training: {global_batch_size: 32}\n");
  EXPECT_EQ(Run({"describe", "--model", file, "-o", "json"}), 0);
  EXPECT_EQ(described_.model().template_().mlp().units(0), 3);
  EXPECT_EQ(described_.dataset().name(), "mnist");
  EXPECT_EQ(described_.batch_size(), 32);
  EXPECT_THAT(terminal_.out(), HasSubstr("\"parameters\": \"520\""));

  EXPECT_EQ(Run({"describe", "--model", "jobs/lenet-1"}), 0);
  EXPECT_EQ(described_.job(), "jobs/lenet-1");
  EXPECT_EQ(described_.batch_size(), 64);
  EXPECT_EQ(Run({"describe", "--model", "lenet-1", "--batch-size", "7"}), 0);
  EXPECT_EQ(described_.job(), "jobs/lenet-1");
  EXPECT_EQ(described_.batch_size(), 7);
}

TEST_F(ModelCommandsTest, DescribeWantsAJobOrAModel) {
  EXPECT_EQ(Run({"describe"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("no job is named; give JOB or --model\n"));
  EXPECT_EQ(Run({"describe", "lenet-1", "--model", "lenet"}), 2);
  EXPECT_EQ(Run({"describe", "lenet-1", "--batch-size", "3"}), 2);
}

TEST_F(ModelCommandsTest, WhatIsNoModelIsToldSo) {
  daemon_.get_job = [](const v1::GetJobRequest&, v1::Job*) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such job");
  };
  daemon_.list_jobs = [](const v1::ListJobsRequest&, v1::ListJobsResponse*) { return grpc::Status::OK; };
  EXPECT_EQ(Run({"describe", "--model", "nosuch", "--dataset", "mnist"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot find the model `nosuch`: no template, file or job has this "
                                         "name; of templates, known here: lenet, "));
  EXPECT_EQ(Run({"describe", "--model", "lenett"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("did you mean `lenet`?"));
}

TEST_F(ModelCommandsTest, SaysWhatIsWrongWithATemplate) {
  daemon_.describe_model = [](const v1::DescribeModelRequest&, v1::ModelDescription*) {
    return client::BadRequestStatus("wrong", {{"model.template.lenet.width", "is 0"}});
  };
  EXPECT_EQ(Run({"describe", "--model", "lenet", "--set", "model.template.lenet.width=0"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("model.template.lenet.width: is 0\n"));
}

TEST_F(ModelCommandsTest, PredictsByTheContentOfFiles) {
  v1::PredictRequest asked;
  daemon_.predict = [&](const v1::PredictRequest& request, grpc::ServerWriter<v1::PredictResponse>* writer) {
    asked = request;
    v1::PredictResponse response;
    v1::Prediction* prediction = response.add_predictions();
    prediction->set_input(request.inputs(0).label());
    v1::ClassScore* first = prediction->add_classes();
    first->set_index(6);
    first->set_name("Shirt");
    first->set_probability(0.75);
    v1::ClassScore* second = prediction->add_classes();
    second->set_index(3);
    second->set_probability(0.25);
    prediction->add_classes()->set_name("T-shirt");
    response.add_notices("d: The model knows no category 'Q' of column 'port'.");
    writer->Write(response);
    return grpc::Status::OK;
  };
  const std::string png = Write("a.png", "\x89PNG\r\n\x1A\n...");
  const std::string jpeg = Write("b", "\xff\xd8\xff");
  const std::string npy = Write("c", std::string("\x93NUMPY\x01\0", 8));
  const std::string csv = Write("d", "1,2\n");
  EXPECT_EQ(Run({"predict", "lenet", png, jpeg, npy, csv, "--top-k", "2"}), 0);
  EXPECT_EQ(asked.name(), "jobs/lenet-1");
  EXPECT_EQ(asked.top_k(), 2);
  ASSERT_EQ(asked.inputs_size(), 4);
  EXPECT_TRUE(asked.inputs(0).has_image());
  EXPECT_EQ(asked.inputs(0).label(), png);
  EXPECT_TRUE(asked.inputs(1).has_image());
  EXPECT_TRUE(asked.inputs(2).has_npy());
  EXPECT_TRUE(asked.inputs(3).has_csv());
  EXPECT_THAT(terminal_.out(), HasSubstr("Shirt"));
  EXPECT_EQ(terminal_.err(), "notice: d: The model knows no category 'Q' of column 'port'.\n");
  EXPECT_THAT(terminal_.out(), HasSubstr("75.0%"));
  EXPECT_THAT(terminal_.out(), HasSubstr("class 3 25.0%"));
  // The first class has an index, too.
  EXPECT_EQ(Run({"predict", "lenet", png, "-o", "json"}), 0);
  EXPECT_THAT(terminal_.out(), HasSubstr(R"({"index":"0","name":"T-shirt","probability":0})"));
}

TEST_F(ModelCommandsTest, ShowsTheWholeOutput) {
  daemon_.predict = [](const v1::PredictRequest& request, grpc::ServerWriter<v1::PredictResponse>* writer) {
    EXPECT_TRUE(request.outputs());
    v1::PredictResponse response;
    v1::Prediction& prediction = *response.add_predictions();
    for (int i = 0; i < 10; ++i) prediction.add_outputs(i + 0.5);
    writer->Write(response);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"predict", "lenet", Write("d", "1,2\n"), "--top-k", "0"}), 0);
  EXPECT_THAT(terminal_.out(), HasSubstr("0.5 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 9.5\n"));
}

TEST_F(ModelCommandsTest, PredictsManyFilesInSeveralCalls) {
  int calls = 0;
  daemon_.predict = [&](const v1::PredictRequest& request, grpc::ServerWriter<v1::PredictResponse>* writer) {
    ++calls;
    v1::PredictResponse response;
    for (const v1::PredictInput& input : request.inputs())
      response.add_predictions()->set_input(input.label());
    writer->Write(response);
    return grpc::Status::OK;
  };
  std::vector<std::string> command = {"predict", "lenet-1", "--format", "json"};
  for (int i = 0; i < 3; ++i)
    command.push_back(Write(std::to_string(i) + ".png", "\x89PNG\r\n\x1A\n" + std::string(3 << 20, ' ')));
  EXPECT_EQ(Run(command), 0);
  EXPECT_EQ(calls, 2);
  EXPECT_THAT(terminal_.out(), HasSubstr("0.png"));
  EXPECT_THAT(terminal_.out(), HasSubstr("2.png"));
}

TEST_F(ModelCommandsTest, CutsLargeArraysIntoSeveralCalls) {
  daemon_.get_job = [](const v1::GetJobRequest& request, v1::Job* job) {
    *job = Job(request.name(), v1::JOB_STATE_SUCCEEDED);
    job->mutable_spec()->mutable_model()->mutable_input()->add_shape(1 << 20);
    return grpc::Status::OK;
  };
  std::vector<int> inputs_of_calls;
  bool is_wrong = false;
  daemon_.predict = [&](const v1::PredictRequest& request, grpc::ServerWriter<v1::PredictResponse>* writer) {
    inputs_of_calls.push_back(request.inputs_size());
    if (is_wrong && inputs_of_calls.size() == 2) {
      return client::BadRequestStatus("wrong", {{"inputs[0]", "holds nan"}});
    }
    v1::PredictResponse response;
    for (const v1::PredictInput& input : request.inputs()) {
      // Samples have a mebibyte.
      for (size_t sample = 0; sample < std::max<size_t>(1, input.npy().size() >> 20); ++sample) {
        v1::Prediction* prediction = response.add_predictions();
        prediction->set_input(input.label());
        prediction->set_sample(sample);
      }
    }
    writer->Write(response);
    return grpc::Status::OK;
  };
  const std::string picture = Write("a.png", "\x89PNG\r\n\x1A\n");
  const auto npy = [](absl::string_view shape, size_t bytes) {
    std::string header = absl::StrCat("{'descr': '|u1', 'fortran_order': False, 'shape': ", shape, ", }");
    header.resize(117, ' ');
    return absl::StrCat("\x93NUMPY", std::string("\x01\x00\x76\x00", 4), header, "\n",
                        std::string(bytes, '\x01'));
  };
  const std::string large = Write("large.npy", npy("(10, 1048576)", 10 << 20));
  EXPECT_EQ(Run({"predict", "lenet-1", picture, large, picture, "-o", "json"}), 0) << terminal_.err();
  EXPECT_THAT(inputs_of_calls, ElementsAre(1, 1, 1, 1, 1));
  for (int sample = 0; sample < 10; ++sample) {
    EXPECT_THAT(terminal_.out(), HasSubstr(absl::StrCat("large.npy\",\"sample\":\"", sample, "\"")))
        << sample;
  }
  inputs_of_calls.clear();
  is_wrong = true;
  EXPECT_EQ(RunAnew({"predict", "lenet-1", large}), 2);
  EXPECT_EQ(terminal_.err(), large + " from sample 4: holds nan\n");
  const std::string other = Write("other.npy", npy("(10485760,)", 10 << 20));
  EXPECT_EQ(RunAnew({"predict", "lenet-1", other}), 2);
  EXPECT_THAT(terminal_.err(),
              HasSubstr("a sample of the model has 1048576 elements, but its shape is (10485760,)"));
  const std::string picture_name = Write("large.png", "\x89PNG\r\n\x1A\n" + std::string(9 << 20, '1'));
  EXPECT_EQ(RunAnew({"predict", "lenet-1", picture_name}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("the picture has more than 8388608 bytes; make it smaller"));
}

TEST_F(ModelCommandsTest, CutsLargeTablesIntoSeveralCalls) {
  // Rows of half a mebibyte. A prediction's output is the first digit of its row.
  bool takes_names = true;
  int calls = 0, failing_call = 0, lost = 0;
  daemon_.predict = [&](const v1::PredictRequest& request, grpc::ServerWriter<v1::PredictResponse>* writer) {
    if (++calls == failing_call) return client::BadRequestStatus("wrong", {{"inputs[0]", "holds nan"}});
    v1::PredictResponse response;
    response.add_notices("an unknown category");
    std::vector<absl::string_view> rows = absl::StrSplit(request.inputs(0).csv(), '\n', absl::SkipEmpty());
    if (takes_names) rows.erase(rows.begin());
    if (calls == 2) rows.resize(rows.size() - lost);
    for (size_t i = 0; i < rows.size(); ++i) {
      v1::Prediction* prediction = response.add_predictions();
      prediction->set_input(request.inputs(0).label());
      prediction->set_sample(static_cast<int64_t>(i));
      prediction->add_outputs(static_cast<float>(rows[i][0] - '0'));
    }
    writer->Write(response);
    return grpc::Status::OK;
  };
  const auto row = [](char digit) {
    return absl::StrCat(std::string(1, digit), std::string(512 << 10, ' '), "\n");
  };
  std::string rows, named = "input,sample,output_0\n", unnamed = named;
  for (int i = 0; i < 20; ++i) rows += row(static_cast<char>('0' + i % 10));
  const std::string table = Write("table.csv", "name\n" + rows);
  for (int i = 0; i < 20; ++i) absl::StrAppend(&named, table, ",", i, ",", i % 10, "\n");
  EXPECT_EQ(RunAnew({"predict", "lenet-1", table, "-k", "0", "--csv"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), named);
  EXPECT_EQ(calls, 3);
  // A notice counts the cells of its part.
  EXPECT_EQ(terminal_.err(), absl::StrCat("notice: an unknown category\nnotice: ", table,
                                          " from sample 7: an unknown category\nnotice: ", table,
                                          " from sample 14: an unknown category\n"));
  // A first row that is a sample is sent with each part, and counted once.
  takes_names = false;
  Write("table.csv", "7\n" + rows);
  absl::StrAppend(&unnamed, table, ",0,7\n");
  for (int i = 0; i < 20; ++i) absl::StrAppend(&unnamed, table, ",", i + 1, ",", i % 10, "\n");
  EXPECT_EQ(RunAnew({"predict", "lenet-1", table, "-k", "0", "--csv"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), unnamed);
  // A part whose predictions cannot be matched to its rows.
  calls = 0;
  lost = 1;
  EXPECT_EQ(RunAnew({"predict", "lenet-1", table, "-k", "0", "--csv"}), 2);
  EXPECT_EQ(terminal_.out(), "");
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot number the predictions of " + table + ": 8 rows gave 7"));
  lost = calls = 0;
  failing_call = 2;
  EXPECT_EQ(RunAnew({"predict", "lenet-1", table}), 2);
  EXPECT_THAT(terminal_.err(), EndsWith(table + " from sample 8: holds nan\n"));
}

TEST_F(ModelCommandsTest, ARowHasATrueClassAfterRowsWithIgnoredLabels) {
  daemon_.predict = [&](const v1::PredictRequest&, grpc::ServerWriter<v1::PredictResponse>* writer) {
    for (int sample = 0; sample < 2; ++sample) {
      v1::PredictResponse response;
      v1::Prediction& prediction = *response.add_predictions();
      prediction.set_sample(sample);
      prediction.add_output_shape(3);
      prediction.add_classes()->set_name("Shirt");
      if (sample == 1) prediction.mutable_true_class()->set_name("Coat");
      writer->Write(response);
    }
    return grpc::Status::OK;
  };
  EXPECT_EQ(RunAnew({"predict", "lenet-1", "--split", "validation", "--csv"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(),
            "sample,true_class,true_probability,class,probability\n0,,,Shirt,0\n1,Coat,0,Shirt,0\n");
}

TEST_F(ModelCommandsTest, PredictsForADataSet) {
  v1::PredictRequest asked;
  bool has_values = false;
  daemon_.predict = [&](const v1::PredictRequest& request, grpc::ServerWriter<v1::PredictResponse>* writer) {
    asked = request;
    for (int sample = 0; sample < 2; ++sample) {
      v1::PredictResponse response;
      if (sample == 0) response.add_notices("Columns were matched by position.");
      v1::Prediction& prediction = *response.add_predictions();
      prediction.set_sample(sample);
      if (has_values) {
        prediction.add_targets(2.5);
        prediction.add_outputs(2.25);
      } else {
        prediction.add_classes()->set_name("Shirt");
        prediction.mutable_classes(0)->set_probability(0.75);
        if (sample == 0) prediction.mutable_true_class()->set_name("Coat");
      }
      writer->Write(response);
    }
    return grpc::Status::OK;
  };
  EXPECT_EQ(RunAnew({"predict", "lenet-1", "--dataset", "shirts", "--split", "training"}), 0)
      << terminal_.err();
  EXPECT_EQ(asked.dataset().name(), "shirts");
  EXPECT_EQ(asked.split(), v1::DATASET_SPLIT_TRAINING);
  EXPECT_EQ(asked.top_k(), 5);
  EXPECT_EQ(terminal_.err(), "notice: Columns were matched by position.\n");
  EXPECT_EQ(terminal_.out(),
            "SAMPLE  TRUE CLASS  CLASS  PROBABILITY  THEN\n"
            "     0  Coat        Shirt        75.0%\n"
            "     1  -           Shirt        75.0%\n");
  EXPECT_EQ(RunAnew({"predict", "lenet-1", "--split", "validation", "--csv"}), 0) << terminal_.err();
  EXPECT_FALSE(asked.has_dataset());
  EXPECT_EQ(terminal_.out(),
            "sample,true_class,true_probability,class,probability\n0,Coat,0,Shirt,0.75\n1,,,Shirt,0.75\n");
  has_values = true;
  EXPECT_EQ(RunAnew({"predict", "lenet-1", "--split", "validation", "--csv"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), "sample,target_0,output_0\n0,2.5,2.25\n1,2.5,2.25\n");
  EXPECT_EQ(RunAnew({"predict", "lenet-1", "--split", "validation"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), "SAMPLE  TARGET  OUTPUT\n     0  2.5     2.25\n     1  2.5     2.25\n");

  EXPECT_EQ(RunAnew({"predict", "lenet-1"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("there are no samples; give a file, or --dataset or --split"));
  EXPECT_EQ(RunAnew({"predict", "lenet-1", "a.png", "--split", "training"}), 2);
  EXPECT_THAT(terminal_.err(),
              HasSubstr("--dataset or --split is given, and the file a.png; give one of them"));
}

TEST_F(ModelCommandsTest, PrintsPredictionsAsCsv) {
  int top_k = 0;
  daemon_.predict = [&](const v1::PredictRequest& request, grpc::ServerWriter<v1::PredictResponse>* writer) {
    top_k = request.top_k();
    v1::PredictResponse response;
    v1::Prediction* prediction = response.add_predictions();
    prediction->set_input(request.inputs(0).label());
    for (const auto& [name, probability] : {std::pair("cat, \"big\"", 1.0 / 3), {"", 0.25}}) {
      v1::ClassScore* score = prediction->add_classes();
      score->set_index(4);
      score->set_name(name);
      score->set_probability(probability);
    }
    prediction->add_outputs(0.1F);
    writer->Write(response);
    return grpc::Status::OK;
  };
  const std::string table = Write("a.csv", "1\n");
  EXPECT_EQ(RunAnew({"predict", "lenet-1", table, "--csv"}), 0) << terminal_.err();
  EXPECT_EQ(top_k, 1);
  EXPECT_EQ(terminal_.out(), "input,sample,class,probability,class_2,probability_2,output_0\n" + table +
                                 ",0,\"cat, \"\"big\"\"\",0.33333333333333331,4,0.25,0.100000001\n");
  EXPECT_EQ(RunAnew({"predict", "lenet-1", table, "--csv", "-o", "json"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("--csv and --output are given; give one"));
}

TEST_F(ModelCommandsTest, NamesTheFilesThatAreWrong) {
  daemon_.predict = [](const v1::PredictRequest&, grpc::ServerWriter<v1::PredictResponse>*) {
    return client::BadRequestStatus("wrong", {{"inputs[1]", "is cut short"}});
  };
  const std::string a = Write("a.png", "\x89PNG\r\n\x1A\n");
  const std::string b = Write("b.png", "\x89PNG\r\n\x1A\n");
  EXPECT_EQ(Run({"predict", "lenet-1", a, b}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr(b + ": is cut short\n"));
  // A folder stands for its pictures, in the order of their paths.
  Write("notes.txt", "none");
  EXPECT_EQ(Run({"predict", "lenet-1", folder_}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr(b + ": is cut short\n"));
  EXPECT_THAT(terminal_.err(), HasSubstr("of other formats skipped: "));
  EXPECT_THAT(terminal_.err(), HasSubstr("1 .txt"));
  EXPECT_NE(Run({"predict", "lenet-1", folder_ + "/none.png"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("none.png"));
  EXPECT_NE(Run({"predict", "lenet-1", Write("c", std::string("a\0b", 3))}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("/c: it is neither a picture"));
  EXPECT_NE(Run({"predict", "lenet-1", Write("text.png", "1,2\n")}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("text.png: it is neither a picture"));
}

TEST_F(ModelCommandsTest, Evaluates) {
  v1::EvaluateRequest asked;
  daemon_.evaluate = [&](const v1::EvaluateRequest& request,
                         grpc::ServerWriter<v1::EvaluateResponse>* writer) {
    asked = request;
    v1::EvaluateResponse response;
    response.set_done(5);
    response.set_samples(10);
    writer->Write(response);
    response.mutable_evaluation()->set_loss(0.5);
    (*response.mutable_evaluation()->mutable_metrics())["accuracy"] = 0.875;
    response.mutable_evaluation()->set_samples(10000);
    writer->Write(response);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"evaluate", "lenet-1", "--dataset", "mnist", "--split", "training", "--metric", "accuracy"}),
            0);
  EXPECT_EQ(asked.name(), "jobs/lenet-1");
  EXPECT_EQ(asked.dataset().name(), "mnist");
  EXPECT_EQ(asked.split(), v1::DATASET_SPLIT_TRAINING);
  EXPECT_THAT(asked.metrics(), ElementsAre(v1::METRIC_ACCURACY));
  EXPECT_EQ(terminal_.out(), "loss 0.5000, accuracy 0.8750 over 10,000 samples\n");

  // A terminal shows the progress, also before the first samples, and erases it at the end.
  terminal_ = FakeTerminal();
  terminal_.environment["TANDEM_ADDRESS"] = daemon_.address();
  terminal_.interactive = true;
  EXPECT_EQ(RunCommand({"evaluate", "lenet-1"}, terminal_), 0);
  EXPECT_THAT(terminal_.out(), HasSubstr("the daemon opens the model"));
  EXPECT_THAT(terminal_.out(), HasSubstr("5 of 10 samples"));
  EXPECT_THAT(terminal_.Screen(), ElementsAre("loss 0.5000, accuracy 0.8750 over 10,000 samples"));
  terminal_.interactive = false;

  for (const char* content : {"synthetic: {shape: [2], classes: 3}\n",
                              "name: job\ndataset: {synthetic: {shape: [2], classes: 3}}\nmodel: {}\n"}) {
    EXPECT_EQ(Run({"evaluate", "lenet-1", "--dataset", Write("data.yaml", content), "-o", "json"}), 0);
    EXPECT_EQ(asked.dataset().synthetic().classes(), 3) << content;
  }
  EXPECT_EQ(Run({"evaluate", "lenet-1", "--dataset", Write("data.yaml", "synthetik: {}\n")}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("did you mean `synthetic`"));
  EXPECT_EQ(Run({"evaluate", "lenet-1", "--metric", "acuracy"}), 2);
}

TEST_F(ModelCommandsTest, AnEvaluationShowsItsClasses) {
  v1::EvaluateResponse response;
  daemon_.evaluate = [&](const v1::EvaluateRequest&, grpc::ServerWriter<v1::EvaluateResponse>* writer) {
    writer->Write(response);
    return grpc::Status::OK;
  };
  response.add_notices("2 images are grey");
  v1::Evaluation& evaluation = *response.mutable_evaluation();
  evaluation.set_loss(0.25);
  evaluation.set_samples(5);
  for (int i = 0; i < 2; ++i) {
    v1::ClassMeasures& one = *evaluation.mutable_classification()->add_classes();
    one.set_samples(i + 2);
    one.set_precision(0.5);
    one.set_recall(0.75);
    one.set_f1(0.6);
  }
  evaluation.mutable_classification()->mutable_classes(0)->set_auc(0.875);
  v1::ConfusionMatrix& matrix = *evaluation.mutable_classification()->mutable_confusion_matrix();
  matrix.set_classes(2);
  for (const int count : {2, 0, 1, 2}) matrix.add_counts(count);
  EXPECT_EQ(Run({"evaluate", "lenet-1"}), 0) << terminal_.err();
  EXPECT_EQ("\n" + terminal_.out(), R"(
loss 0.2500 over 5 samples

CLASS  SAMPLES  PRECISION  RECALL      F1     AUC
    0        2     0.5000  0.7500  0.6000  0.8750
    1        3     0.5000  0.7500  0.6000       -

samples of the class (row) that were given the class (column)
CLASS  0  1
    0  2  0
    1  1  2
)");
  EXPECT_EQ(terminal_.err(), "notice: 2 images are grey\n");
  for (const char* name : {"cat", "dog"}) evaluation.mutable_classification()->add_class_names(name);
  EXPECT_EQ(Run({"evaluate", "lenet-1"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr(R"(
CLASS  NAME  SAMPLES  PRECISION  RECALL      F1     AUC
    0  cat         2     0.5000  0.7500  0.6000  0.8750
    1  dog         3     0.5000  0.7500  0.6000       -

samples of the class (row) that were given the class (column)
CLASS  NAME  0  1
    0  cat   2  0
    1  dog   1  2
)"));
  // A large matrix does not fit on a terminal.
  matrix.set_classes(31);
  for (int i = matrix.counts_size(); i < 31 * 31; ++i) matrix.add_counts(1);
  EXPECT_EQ(Run({"evaluate", "lenet-1"}), 0) << terminal_.err();
  EXPECT_THAT(
      terminal_.out(),
      HasSubstr("the confusion matrix of 31 classes is too large for a terminal; -o json prints it\n"));
  // No sample counted.
  evaluation.Clear();
  evaluation.set_loss(std::nan(""));
  evaluation.set_samples(5);
  EXPECT_EQ(Run({"evaluate", "lenet-1"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("no result: the job's loss ignores the labels of all 5 samples\n"));
}

TEST_F(ModelCommandsTest, AnEvaluationWithoutAResultIsAnError) {
  daemon_.evaluate = [](const v1::EvaluateRequest&, grpc::ServerWriter<v1::EvaluateResponse>*) {
    return grpc::Status::OK;
  };
  EXPECT_NE(Run({"evaluate", "lenet-1"}), 0);
  EXPECT_EQ(terminal_.out(), "");
}

TEST(ModelTableTest, FormatsOperations) {
  EXPECT_EQ(FormatOperations(587520), "587,520");
  EXPECT_EQ(FormatOperations(1820000000), "1.82 G");
  EXPECT_EQ(FormatOperations(45600000), "45.6 M");
  EXPECT_EQ(FormatOperations(999999999), "1.00 G");
  EXPECT_EQ(FormatOperations(123000000000), "123 G");
}

}  // namespace
}  // namespace tandem::cli
