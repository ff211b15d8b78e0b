#include "proto/job_file/foreign_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/spelling.h"

namespace tandem {
namespace {

// Returns the paths for a name, the preferred path first.
std::vector<absl::string_view> PathsFor(absl::string_view typed) {
  std::string wanted;
  for (const char c : typed) {
    if (c != '_' && c != '-') wanted += absl::ascii_tolower(c);
  }
  std::vector<absl::string_view> paths;
  for (const ForeignName& row : ForeignNames()) {
    for (const absl::string_view name : absl::StrSplit(row.names, ' ')) {
      if (name == wanted) paths.push_back(row.path);
    }
  }
  return paths;
}

}  // namespace

const std::vector<ForeignName>& ForeignNames() {
  static const auto& names = *new std::vector<ForeignName>{
      // Layers and their fields.
      {"layers", "model.layers"},
      {"linear fc fullyconnected fullyconnectedlayer innerproduct", "model.layers[0].dense"},
      {"convolution convolution2d convolutionlayer convolution2dlayer", "model.layers[0].conv2d"},
      {"avgpool avgpool2d avgpooling2d averagepooling2d averagepooling2dlayer",
       "model.layers[0].average_pool2d"},
      {"subsampling subsamplinglayer maxpooling2d maxpooling2dlayer", "model.layers[0].max_pool2d"},
      {"gap globalavgpool2d globalaveragepooling2d adaptiveavgpool2d",
       "model.layers[0].global_average_pool2d"},
      {"relu leakyrelu elu gelu silu selu sigmoid tanh", "model.layers[0].activation"},
      {"outfeatures outputsize nout hiddensize", "model.layers[0].dense.units"},
      {"outchannels numfilters channels nout units", "model.layers[0].conv2d.filters"},
      {"kernelsize filtersize", "model.layers[0].conv2d.kernel"},
      {"kernel kernelsize poolsize", "model.layers[0].max_pool2d.size"},
      {"p probability droprate dropoutrate", "model.layers[0].dropout.rate"},
      // The optimizer and the learning rate.
      {"lr baselr learningrate learnrate initiallearnrate", "training.optimizer.sgd.learning_rate"},
      {"l2 wd weightdecay l2regularization", "training.optimizer.sgd.weight_decay"},
      {"sgdm", "training.optimizer.momentum"},
      {"nag", "training.optimizer.nesterov"},
      {"optimizer updater solver", "training.optimizer"},
      {"gradientthreshold gradientclipping gradclip clipgradient clipnorm maxgradnorm",
       "training.optimizer.clip.norm"},
      {"gradientthresholdmethod gradientnormalization", "training.optimizer.clip"},
      {"schedule lrscheduler learnrateschedule", "training.schedule"},
      {"step steplr factor factorscheduler", "training.schedule.piecewise"},
      {"multifactor multifactorscheduler", "training.schedule.multistep"},
      {"linear linearlr", "training.schedule.polynomial"},
      {"learnratedropfactor", "training.schedule.piecewise.drop_factor"},
      {"learnratedropperiod stepsize", "training.schedule.piecewise.drop_period"},
      // The loss and the metrics.
      {"meansquarederror l2 l2loss", "training.loss.mse"},
      {"mae meanabsoluteerror l1loss", "training.loss.l1"},
      {"nll nllloss", "training.loss.negative_log_likelihood"},
      {"bce xent binarycrossentropy bcewithlogits", "training.loss.binary_cross_entropy_with_logits"},
      {"loss criterion lossfunction", "training.loss"},
      {"metrics evaluators", "training.metrics"},
      // The course of training.
      {"globalbatchsize batchsize minibatchsize", "training.global_batch_size"},
      {"epochs numepoch nbepoch maxepochs", "training.epochs"},
      {"maxiterations iterations", "training.steps"},
      {"shuffle", "training.shuffle"},
      {"seed rngseed", "training.seed"},
      {"earlystopping", "training.early_stopping"},
      {"patience validationpatience", "training.early_stopping.patience"},
      {"validationfrequency", "training.validation.every_steps"},
      {"verbosefrequency", "training.report.every_steps"},
      {"outputnetwork", "training.best_model.export_best"},
      {"objectivemetricname", "training.best_model.metric"},
      {"dtype amp mixedprecision", "training.precision"},
      {"ema", "training.weight_average"},
      {"checkpointfrequency", "checkpoints.every_epochs"},
      // Replicas.
      {"gpus numgpus ngpus worldsize", "replicas.count"},
      {"devices ctx devicelist executionenvironment", "replicas.devices"},
      {"prefetchbuffer prefetchfactor", "replicas.prefetch"},
      {"compression compressionparams gradientcompression powersgd thresholdalgorithm",
       "replicas.all_reduce.compression"},
      {"workerload", "replicas.worker_load"},
      {"averagingfrequency", "replicas.parameter_averaging.every_iterations"},
      {"averageupdaters", "replicas.parameter_averaging.average_optimizer_state"},
      {"reportscoreafteraveraging", "replicas.parameter_averaging.report_score_after_averaging"},
      // Data.
      {"augmentation transform transforms", "dataset.augmentation"},
      {"normalization normalize", "dataset.normalization"},
      {"std", "dataset.normalization.standard_deviation"},
      {"p", "dataset.augmentation[0].horizontal_flip.probability"},
      {"randomflip randomhorizontalflip randomflipleftright randxreflection",
       "dataset.augmentation[0].horizontal_flip"},
      {"randomverticalflip randomfliptopbottom randyreflection", "dataset.augmentation[0].vertical_flip"},
      {"randxtranslation randytranslation", "dataset.augmentation[0].translation"},
  };
  return names;
}

std::string NameForForeign(absl::string_view typed, const std::vector<std::string>& names) {
  for (const absl::string_view path : PathsFor(typed)) {
    const std::vector<std::string> parts = absl::StrSplit(path, '.');
    // The deepest part is the nearest to what was meant.
    for (size_t first = parts.size(); first-- > 0;) {
      const std::string part = parts[first].substr(0, parts[first].find('['));
      if (std::find(names.begin(), names.end(), part) == names.end()) continue;
      return absl::StrJoin(parts.begin() + first, parts.end(), ".");
    }
  }
  return "";
}

std::string FieldHint(absl::string_view typed, const std::vector<std::string>& names) {
  std::string meant = NameForForeign(typed, names);
  if (meant.empty()) meant = NearestName(typed, names);
  if (meant.empty()) {
    const std::vector<absl::string_view> paths = PathsFor(typed);
    if (!paths.empty()) meant = std::string(paths.front());
  }
  return meant.empty() ? SpellingHint(typed, names) : absl::StrCat("did you mean `", meant, "`?");
}

}  // namespace tandem
