#include "engine/training/notices.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/data/data_names.h"
#include "engine/layers/model.h"
#include "engine/layers/model_template.h"
#include "engine/tensor/shape.h"
#include "engine/training/gradient_reduction.h"
#include "engine/training/judge.h"
#include "engine/training/replica_spec.h"
#include "engine/training/resident_data.h"

namespace tandem {
namespace {

// Returns "1 of 3 classes has" or "2 of 3 classes have".
std::string CountedClasses(const std::vector<size_t>& classes, const DatasetInfo& info) {
  return absl::StrCat(classes.size(), " of ", info.classes, " classes ",
                      classes.size() == 1 ? "has" : "have");
}

// Lists at most 5 classes, by their names if they have names.
std::string ListClasses(const std::vector<size_t>& classes, const DatasetInfo& info) {
  constexpr size_t kShown = 5;
  const size_t shown = std::min(kShown, classes.size());
  std::vector<std::string> names;
  for (size_t i = 0; i < shown; ++i) {
    names.push_back(info.class_names.empty() ? absl::StrCat(classes[i]) : info.class_names[classes[i]]);
  }
  return absl::StrCat(info.class_names.empty() ? absl::StrJoin(names, ", ") : ListNames(names),
                      shown == classes.size() ? "" : absl::StrCat(" and ", classes.size() - shown, " more"));
}

}  // namespace

std::string WeightsNotice(const v1::InitialWeights& weights, size_t tensors) {
  return absl::StrCat("begins with ", tensors, tensors == 1 ? " tensor of " : " tensors of ",
                      weights.has_file() ? weights.file() : weights.artifact().job());
}

std::string NormalizationNotice(const v1::DatasetSpec& dataset) {
  if (!dataset.normalization().from_data()) return "";
  return "dataset.normalization.from_data takes mean and deviation from this job's data. The loaded weights "
         "may have been trained with others; to keep those, give mean and standard_deviation.";
}

std::string NormalizationNotice(const v1::Normalization& of_model, const ResolvedNormalization& own) {
  const auto equal = [](const auto& a, const auto& b) {
    const auto a_size = static_cast<int>(a.size()), b_size = static_cast<int>(b.size());
    if (a_size != b_size && a_size != 1 && b_size != 1) return false;
    for (int i = 0; i < std::max(a_size, b_size); ++i) {
      if (a[a_size == 1 ? 0 : i] != b[b_size == 1 ? 0 : i]) return false;
    }
    return true;
  };
  if (of_model.scale() == own.scale && equal(of_model.mean(), own.mean) &&
      equal(of_model.standard_deviation(), own.standard_deviation)) {
    return "";
  }
  const auto text = [](double scale, const auto& mean, const auto& deviation) {
    return absl::StrCat("scale ", scale, ", mean ", mean[0], mean.size() > 1 ? ", ..." : "",
                        " and standard_deviation ", deviation[0], deviation.size() > 1 ? ", ..." : "");
  };
  return absl::StrCat("The loaded weights were trained on samples with another dataset.normalization (",
                      text(of_model.scale(), of_model.mean(), of_model.standard_deviation()),
                      ") than this job's (", text(own.scale, own.mean, own.standard_deviation),
                      "); to keep theirs, give the numbers of \"normalization\" in their file.");
}

std::string MemoryNotice(int64_t bytes, int64_t planned_bytes) {
  if (bytes <= planned_bytes) return "";
  return absl::StrCat("A replica takes ", bytes >> 20, " MiB of memory, more than the ", planned_bytes >> 20,
                      " MiB that were planned.");
}

std::string CompressionNotice(const v1::Replicas& replicas, const std::vector<Parameter>& parameters) {
  if (!replicas.all_reduce().has_compression() || LoadsOf(replicas).size() == 1) return "";
  const int64_t rank = replicas.all_reduce().compression().rank();
  int64_t whole = 0;
  int64_t sent = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.frozen) continue;
    whole += parameter.shape.elements();
    sent += NumbersToReduce(parameter.shape, rank);
  }
  if (sent == whole) {
    return absl::StrCat("No gradient is compressed: none is a matrix of which two factors of rank ", rank,
                        " have at most half of the numbers.");
  }
  const auto bytes = [](int64_t numbers) {
    return absl::StrFormat("%.2f MiB", static_cast<double>(numbers * sizeof(float)) / (1 << 20));
  };
  return absl::StrCat("Gradients are compressed to rank ", rank, ": those of a step have ", bytes(sent),
                      " instead of ", bytes(whole), ".");
}

std::string ScalingNotice(const v1::Schedule& schedule, int replicas, double first_rate) {
  if (!schedule.linear_scaling() || replicas == 1) return "";
  return absl::StrCat("the schedule's rates are multiplied by ", replicas,
                      ", the number of replicas with a load; the first step's is ", first_rate);
}

std::string LayoutNotice(const v1::Model& model) {
  const Shape sample = InputShapeOf(model);
  const bool convolves = std::any_of(model.layers().begin(), model.layers().end(),
                                     [](const v1::Layer& layer) { return layer.has_conv2d(); });
  if (!convolves || !LooksChannelsLast(sample)) return "";
  return absl::StrCat("The network takes samples ", sample.ToString(), " for ", sample[0], " channels of ",
                      sample[1], " x ", sample[2],
                      "; if they are [height, width, channels], give dataset.npy.layout: nhwc.");
}

std::string OutputNotice(const v1::Model& model, const v1::Loss& loss) {
  if (model.layers().empty()) return "";
  const v1::Layer& last = *model.layers().rbegin();
  const std::string name = absl::StrCat("the last layer, \"", last.name(), "\",");
  if (loss.has_negative_log_likelihood() || loss.has_kl_divergence()) {
    const bool has_logarithms = std::any_of(model.layers().begin(), model.layers().end(),
                                            [](const v1::Layer& layer) { return layer.has_log_softmax(); });
    if (has_logarithms) return "";
    return absl::StrCat(
        "The loss takes logarithms of probabilities, but ", name,
        " is no log_softmax; add a layer log_softmax",
        loss.has_negative_log_likelihood() ? ", or give the loss softmax_cross_entropy." : ".");
  }
  if (loss.has_softmax_cross_entropy() && last.has_softmax()) {
    return absl::StrCat("The loss computes the softmax itself, but ", name,
                        " is a softmax, too; remove the layer.");
  }
  const bool is_sigmoid = last.dense().activation() == v1::ACTIVATION_SIGMOID ||
                          last.conv2d().activation() == v1::ACTIVATION_SIGMOID ||
                          last.activation().function() == v1::ACTIVATION_SIGMOID;
  if (loss.has_binary_cross_entropy_with_logits() && is_sigmoid) {
    return absl::StrCat("The loss computes the sigmoid itself, but ", name,
                        " computes a sigmoid, too; remove the sigmoid.");
  }
  return "";
}

std::string UntrainedClassesNotice(const v1::DatasetSpec& dataset, const DatasetInfo& info,
                                   const std::vector<int64_t>& train,
                                   const std::vector<int64_t>& validation) {
  const bool is_limited = dataset.train_limit() > 0;
  std::vector<size_t> trained, untrained;
  for (size_t i = 0; i < train.size(); ++i) {
    if (train[i] > 0) {
      trained.push_back(i);
    } else if (is_limited || (!validation.empty() && validation[i] > 0)) {
      untrained.push_back(i);
    }
  }
  const int64_t samples = std::accumulate(train.begin(), train.end(), int64_t{0});
  if (is_limited && trained.size() == 1 && samples > 1) {
    return absl::StrCat("All ", samples, " training samples that dataset.train_limit (",
                        dataset.train_limit(), ") leaves are of class ", ListClasses(trained, info),
                        ": the data are in the order of their classes; shuffle them, or raise train_limit.");
  }
  if (untrained.empty()) return "";
  return absl::StrCat(
      CountedClasses(untrained, info), is_limited ? "" : " validation samples, but", " no training sample",
      is_limited ? absl::StrCat(" within dataset.train_limit (", dataset.train_limit(), ")") : "", ": ",
      ListClasses(untrained, info), ".");
}

std::string UnvalidatedClassesNotice(const DatasetInfo& info, const std::vector<int64_t>& train,
                                     const std::vector<int64_t>& validation) {
  std::vector<size_t> unvalidated;
  for (size_t i = 0; i < validation.size(); ++i) {
    if (train[i] > 0 && validation[i] == 0) unvalidated.push_back(i);
  }
  if (unvalidated.empty()) return "";
  return absl::StrCat(CountedClasses(unvalidated, info),
                      " training samples, but no validation sample: ", ListClasses(unvalidated, info), ".");
}

std::string ResultsNotice(const TrainingState& begin, const v1::Training& training, bool validates,
                          bool other_data) {
  const v1::TrainingSummary& before = begin.summary;
  std::string why;
  if (!before.has_best() && !before.has_validation()) return "";
  const std::string aim = AimsOf(training).best;
  if (before.has_best() && begin.aims.best != aim) {
    why = absl::StrCat("are by ", begin.aims.best, ", and this job's are by ", aim);
  } else if (!validates && (before.has_validation() || before.best().validation())) {
    why = "are of validation, which this job does not have";
  } else if (validates && before.has_best() && !before.best().validation()) {
    why = "are of training, and this job has validation";
  } else if (other_data) {
    why = "are of other data";
  }
  if (why.empty()) return "";
  return absl::StrCat("The results before the checkpoint of step ", begin.step, " ", why,
                      ": the best result begins anew.");
}

std::string ChangedDataNotice(int64_t step, const std::vector<std::string>& fields) {
  if (fields.empty()) return "";
  return absl::StrCat("The data changed since the checkpoint of step ", step,
                      " was written: ", absl::StrJoin(fields, ", "), ".");
}

std::string EpochsNotice(const TrainingState& begin, const TrainingLength& length) {
  if (begin.steps_per_epoch == 0 || begin.steps_per_epoch == length.steps_per_epoch) return "";
  return absl::StrCat("An epoch had ", begin.steps_per_epoch, " steps where the checkpoint of step ",
                      begin.step, " was written, and has ", length.steps_per_epoch,
                      " here: ", length.WholeEpochs(begin.step), " epochs count as trained, of ",
                      length.epochs, ", and training ends with step ", length.steps, ".");
}

std::string BatchNotice(int64_t global_batch_size, int64_t train_samples) {
  if (global_batch_size <= train_samples) return "";
  return absl::StrCat("training.global_batch_size (", global_batch_size,
                      ") is larger than the training data (", train_samples,
                      train_samples == 1 ? " sample" : " samples", "): each epoch is one step.");
}

std::string StatisticsNotice(int64_t samples) {
  return absl::StrCat("training has ended; its ", samples,
                      " samples go through the network once more, for the statistics of batch_norm");
}

std::string DataNotice(const v1::JobSpec& spec, const DatasetInfo& data, bool planned,
                       const std::string& no_memory) {
  if (spec.replicas().device_kind() != v1::DEVICE_KIND_GPU ||
      spec.gpu().data() == v1::GpuOptions::DATA_PLACEMENT_HOST_MEMORY) {
    return "";
  }
  std::string why = no_memory.empty() ? WhyNotResident(spec, data) : no_memory;
  if (why.empty() && !planned) why = "beside all else they are too many for gpu.memory_limit_bytes";
  return why.empty() ? "" : absl::StrCat("the GPU does not keep the samples: ", why);
}

}  // namespace tandem
