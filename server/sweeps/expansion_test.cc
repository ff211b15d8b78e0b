#include "server/sweeps/expansion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "google/protobuf/text_format.h"
#include "server/sweeps/random_values.h"

namespace tandem {
namespace {

v1::Sweep Parse(const std::string& text) {
  v1::Sweep sweep;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat(R"pb(base {
                          name: "small"
                          model {
                            input { shape: 4 }
                            layers { dense { units: 8 } }
                          }
                          training {
                            seed: 7
                            epochs: 3
                            optimizer { sgd { learning_rate: 0.1 } }
                          }
                        })pb",
                   text),
      &sweep))
      << text;
  return sweep;
}

absl::StatusOr<std::vector<SweepJob>> ExpandSweep(const v1::Sweep& sweep) {
  const absl::StatusOr<SweepExpansion> expansion = SweepExpansion::Create(&sweep);
  if (!expansion.ok()) return expansion.status();
  std::vector<SweepJob> jobs;
  for (int i = 0; i < expansion->jobs(); ++i) jobs.push_back(expansion->Job(i));
  return jobs;
}

std::string Number(double value) { return absl::StrCat("values { number_value: ", value, " }"); }

// Returns "field: description" of each violation.
std::vector<std::string> Problems(const v1::Sweep& sweep) {
  std::vector<std::string> problems;
  const auto jobs = ExpandSweep(sweep);
  EXPECT_EQ(jobs.status().code(), absl::StatusCode::kInvalidArgument) << jobs.status();
  for (const FieldViolation& violation : GetFieldViolations(jobs.status())) {
    problems.push_back(absl::StrCat(violation.field, ": ", violation.description));
  }
  return problems;
}

TEST(Expansion, AGridIsCrossedTheLastFieldTheFastest) {
  const auto jobs = ExpandSweep(Parse(
      absl::StrCat("grid { field: \"training.optimizer.adam.learning_rate\" ", Number(0.1), Number(0.01),
                   "} grid { field: \"model.layers[0].dense.units\" ", Number(4), Number(16), "}")));
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  std::vector<std::string> values;
  for (const SweepJob& job : *jobs) {
    values.push_back(DescribeValues(job.values));
    EXPECT_EQ(job.spec.training().seed(), 7);
    EXPECT_FALSE(job.spec.training().optimizer().has_sgd());
    EXPECT_FALSE(job.spec.training().has_best_model());
  }
  EXPECT_EQ(values, (std::vector<std::string>{
                        "training.optimizer.adam.learning_rate=0.1, model.layers[0].dense.units=4",
                        "training.optimizer.adam.learning_rate=0.1, model.layers[0].dense.units=16",
                        "training.optimizer.adam.learning_rate=0.01, model.layers[0].dense.units=4",
                        "training.optimizer.adam.learning_rate=0.01, model.layers[0].dense.units=16"}));
  EXPECT_EQ((*jobs)[3].spec.model().layers(0).dense().units(), 16);
  EXPECT_EQ((*jobs)[3].spec.training().optimizer().adam().learning_rate(), 0.01);
}

TEST(Expansion, TheObjectiveIsTheJobsBestModel) {
  const auto jobs = ExpandSweep(Parse(
      absl::StrCat("objective { metric: \"accuracy\" } grid { field: \"training.epochs\" ", Number(1), "}")));
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  const v1::BestModel& best = jobs->front().spec.training().best_model();
  EXPECT_EQ(best.metric(), "accuracy");
  EXPECT_TRUE(best.has_keep_weights());
  EXPECT_FALSE(best.keep_weights());
  v1::Sweep other = Parse(
      "objective { metric: \"accuracy\" } grid { field: \"training.epochs\" values { number_value: 1 } }");
  other.mutable_base()->mutable_training()->mutable_best_model()->set_metric("loss");
  EXPECT_EQ(Problems(other),
            (std::vector<std::string>{"sweep.objective.metric: is \"accuracy\", and "
                                      "base.training.best_model.metric is \"loss\"; give one of them"}));
}

TEST(Expansion, RandomValuesFollowFromTheSeedAlone) {
  const std::string fields = R"pb(
    fields {
      field: "training.optimizer.adam.learning_rate"
      log_uniform { min: 0.0001 max: 1 }
    }
    fields {
      field: "training.epochs"
      integer { min: 2 max: 4 }
    }
    fields {
      field: "training.optimizer.adam.beta1"
      uniform { min: 0.5 max: 0.9 }
    }
    fields {
      field: "model.layers[0].dense.units"
      choice {
        values { number_value: 4 }
        values { number_value: 8 }
      }
    })pb";
  const auto few = ExpandSweep(Parse(absl::StrCat("random { samples: 3 seed: 5 ", fields, "}")));
  const auto many = ExpandSweep(Parse(absl::StrCat("random { samples: 300 seed: 5 ", fields, "}")));
  const auto others = ExpandSweep(Parse(absl::StrCat("random { samples: 3 seed: 6 ", fields, "}")));
  ASSERT_TRUE(few.ok() && many.ok() && others.ok()) << few.status();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(DescribeValues((*few)[i].values), DescribeValues((*many)[i].values));
    EXPECT_NE(DescribeValues((*few)[i].values), DescribeValues((*others)[i].values));
  }
  std::set<int64_t> epochs, units;
  double sum_of_logs = 0;
  for (const SweepJob& job : *many) {
    const v1::Adam& adam = job.spec.training().optimizer().adam();
    EXPECT_GE(adam.learning_rate(), 0.0001);
    EXPECT_LT(adam.learning_rate(), 1);
    EXPECT_GE(adam.beta1(), 0.5);
    EXPECT_LT(adam.beta1(), 0.9);
    sum_of_logs += std::log10(adam.learning_rate());
    epochs.insert(job.spec.training().epochs());
    units.insert(job.spec.model().layers(0).dense().units());
  }
  EXPECT_EQ(epochs, (std::set<int64_t>{2, 3, 4}));
  EXPECT_EQ(units, (std::set<int64_t>{4, 8}));
  // The mean of 300 values from [-4, 0) has a standard error of 0.067.
  EXPECT_NEAR(sum_of_logs / 300, -2, 0.3);
}

TEST(Expansion, SaysAllThatIsWrong) {
  EXPECT_EQ(Problems(v1::Sweep()),
            (std::vector<std::string>{
                "sweep.base: is required: the spec that the jobs share",
                "sweep.grid: is required, unless random is given: the fields and their values"}));
  EXPECT_EQ(
      Problems(Parse(R"pb(grid {
                            field: "training.epocs"
                            values { number_value: 1 }
                          }
                          grid { field: "training.epochs" }
                          grid {
                            field: "training.epochs"
                            values { number_value: 1 }
                            values { number_value: 1 }
                            values { null_value: NULL_VALUE }
                          }
                          grid {
                            field: "training"
                            values { number_value: 1 }
                          }
                          grid { values { number_value: 1 } }
                          display_name: "-rf"
                          max_running: -1)pb")),
      (std::vector<std::string>{
          "sweep.display_name: may have letters, digits, '_', '-' and '.', begins with a letter or a "
          "digit, and "
          "has at most 48 characters",
          "sweep.grid[0].field: training.epocs: unknown field; did you mean `epochs`?",
          "sweep.grid[1].values: is required: one value, or more",
          "sweep.grid[2].field: is \"training.epochs\", which is already given",
          "sweep.grid[2].values[1]: is 1, which is already given", "sweep.grid[2].values[2]: has no value",
          "sweep.grid[3].field: is \"training\", but \"training.epochs\" is already given: one is "
          "part of "
          "the other",
          "sweep.grid[4].field: is required: a path such as training.optimizer.adam.learning_rate",
          "sweep.max_running: is -1; it must be from 1 to 1000, or be 0 for any number"}));
  EXPECT_EQ(
      Problems(Parse(R"pb(random {
                            samples: 1001
                            fields {
                              field: "training.epochs"
                              integer { min: 3 max: 2 }
                            }
                            fields {
                              field: "name"
                              log_uniform { min: 0 max: 1 }
                            }
                            fields { field: "priority" }
                          })pb")),
      (std::vector<std::string>{
          "sweep.random.samples: is 1001; it must be from 1 to 1000",
          "sweep.random.fields[0].integer.max: is 2; it must be at least min, which is 3",
          "sweep.random.fields[1].log_uniform.min: is 0; it must be above 0",
          "sweep.random.fields[2].distribution: is required: uniform, log_uniform, integer or choice"}));
}

TEST(Expansion, AValueThatIsNoneOfItsFieldIsNamedOnce) {
  EXPECT_EQ(Problems(Parse(R"pb(grid {
                                  field: "training.epochs"
                                  values { number_value: 1.5 }
                                  values { number_value: 2 }
                                }
                                grid {
                                  field: "training.seed"
                                  values { number_value: 1 }
                                  values { number_value: 2 }
                                })pb")),
            (std::vector<std::string>{
                "sweep.grid[0].values[0]: training.epochs: is 1.5; it must be a whole number"}));
}

TEST(Expansion, TooManyFieldsAreRefusedBeforeTheyAreLookedAt) {
  v1::Sweep sweep = Parse("");
  for (int i = 0; i <= kMostSweepFields; ++i) sweep.add_grid()->set_field("no.such.field");
  const std::vector<std::string> problems = Problems(sweep);
  ASSERT_EQ(problems.size(), 1);
  EXPECT_EQ(problems[0], "sweep.grid: has 101 fields; at most 100 may differ");
}

TEST(Expansion, ARangeMustHaveAWidth) {
  v1::SweepRandomField field;
  field.mutable_uniform()->set_min(-1e308);
  field.mutable_uniform()->set_max(1e308);
  EXPECT_EQ(CheckDistribution(field).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Expansion, EachWrongEndOfADistributionIsNamed) {
  const auto fields_of = [](const std::string& text) {
    v1::SweepRandomField field;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &field)) << text;
    std::string fields;
    for (const FieldViolation& violation : GetFieldViolations(CheckDistribution(field))) {
      absl::StrAppend(&fields, violation.field, " ");
    }
    return fields;
  };
  EXPECT_EQ(fields_of("uniform { min: 1 max: 1 }"), "uniform.max ");
  EXPECT_EQ(fields_of("uniform { min: nan max: inf }"), "uniform.min uniform.max ");
  EXPECT_EQ(fields_of("log_uniform { min: 0 max: 1 }"), "log_uniform.min ");
  EXPECT_EQ(fields_of("log_uniform { min: 2 max: 1 }"), "log_uniform.max ");
  EXPECT_EQ(fields_of("integer { min: 3 max: 2 }"), "integer.max ");
  // Larger integers are not exact as numbers of JSON.
  EXPECT_EQ(fields_of("integer { min: -9007199254740993 max: 9007199254740993 }"),
            "integer.min integer.max ");
  EXPECT_EQ(fields_of("choice {}"), "choice.values ");
  EXPECT_EQ(fields_of(""), "distribution ");
}

TEST(Expansion, TooManyJobsAreRefused) {
  v1::Sweep sweep = Parse("");
  for (const char* field : {"training.epochs", "training.seed"}) {
    v1::SweepGridField* grid = sweep.add_grid();
    grid->set_field(field);
    for (int i = 1; i <= 40; ++i) grid->add_values()->set_number_value(i);
  }
  const auto jobs = ExpandSweep(sweep);
  EXPECT_EQ(jobs.status().code(), absl::StatusCode::kResourceExhausted) << jobs.status();
  EXPECT_EQ(GetReason(jobs.status()), "SWEEP_TOO_LARGE");
}

// Each layer has a few bytes and takes a hundred in memory, so jobs are made one by one.
TEST(Expansion, JobsOfManyLayersAreTaken) {
  v1::Sweep sweep = Parse("");
  for (int i = 0; i < 4000; ++i) sweep.mutable_base()->mutable_model()->add_layers()->mutable_dense();
  v1::SweepGridField* grid = sweep.add_grid();
  grid->set_field("training.seed");
  for (int i = 1; i <= kMostSweepJobs; ++i) grid->add_values()->set_number_value(i);
  const auto jobs = SweepExpansion::Create(&sweep);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->jobs(), kMostSweepJobs);
  EXPECT_GT(jobs->bytes(), sweep.base().ByteSizeLong() * kMostSweepJobs);
  EXPECT_LT(jobs->bytes(), kMostSweepBytes);
  EXPECT_EQ(jobs->Job(999).spec.training().seed(), 1000);
}

TEST(Expansion, ChecksThePruning) {
  const auto sweep = [](const std::string& pruning, int jobs = kMostSweepJobs) {
    v1::Sweep parsed = Parse(absl::StrCat("grid { field: \"training.seed\" } pruning { ", pruning, " }"));
    for (int i = 1; i <= jobs; ++i) parsed.mutable_grid(0)->add_values()->set_number_value(i);
    return parsed;
  };
  EXPECT_TRUE(ExpandSweep(sweep("")).ok());
  EXPECT_TRUE(ExpandSweep(sweep("min_jobs: 999 min_epochs: 1000000")).ok());
  // One more job than min_jobs is needed.
  EXPECT_TRUE(ExpandSweep(sweep("", 6)).ok());
  EXPECT_TRUE(ExpandSweep(sweep("min_jobs: 1", 2)).ok());
  EXPECT_THAT(Problems(sweep("", 5)),
              testing::ElementsAre(
                  "sweep.pruning.min_jobs: is 5 by default, and the sweep has only 5 jobs, so no job could "
                  "ever be pruned; give a min_jobs from 1 to 4, more jobs, or no pruning"));
  EXPECT_THAT(Problems(sweep("min_jobs: 3", 1)),
              testing::ElementsAre("sweep.pruning.min_jobs: is 3, and the sweep has only 1 job, so no job "
                                   "could ever be pruned; give more jobs, or no pruning"));
  EXPECT_THAT(Problems(sweep("min_jobs: -1 min_epochs: -1")),
              testing::ElementsAre(
                  "sweep.pruning.min_jobs: is -1; it must be from 1 to 999, or be 0 for the default",
                  "sweep.pruning.min_epochs: is -1; it must be from 1 to 1000000, or be 0 for the default"));
  EXPECT_THAT(Problems(sweep("min_jobs: 1000 min_epochs: 1000001")), testing::SizeIs(2));
}

TEST(RandomValues, WideIntegerRangesAreWhole) {
  v1::SweepRandomField field;
  field.mutable_integer()->set_min(-(int64_t{1} << 53));
  field.mutable_integer()->set_max(int64_t{1} << 53);
  ASSERT_TRUE(CheckDistribution(field).ok());
  for (int sample = 0; sample < 100; ++sample) {
    const double value = DrawValue(field, 1, 0, sample).number_value();
    EXPECT_EQ(value, std::floor(value));
    EXPECT_LE(std::abs(value), 0x1p53);
  }
}

}  // namespace
}  // namespace tandem
