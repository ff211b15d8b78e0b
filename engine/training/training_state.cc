#include "engine/training/training_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"

namespace tandem {
namespace {

using nlohmann::json;

// Above the length of any training, and small enough that sums do not overflow.
constexpr int64_t kMostSteps = int64_t{1} << 61;
constexpr int64_t kMostShift = int64_t{1} << 60;

// JSON has no non-finite numbers, so they become strings. Finite numbers get enough digits to be exact.
json FromDouble(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

json FromOptional(const std::optional<double>& value) {
  return value.has_value() ? FromDouble(*value) : json(nullptr);
}

json FromMeasurement(const Measurement& measurement) {
  json sums = json::array();
  for (const double sum : measurement.sums) sums.push_back(FromDouble(sum));
  return {{"sums", std::move(sums)},
          {"samples", measurement.samples},
          {"data_wait_seconds", measurement.data_wait_seconds},
          {"reduce_seconds", measurement.reduce_seconds},
          {"skipped_steps", measurement.skipped_steps}};
}

// Reads members of an object. Remembers the first member that is missing or wrong.
class ObjectReader {
 public:
  explicit ObjectReader(const json& object) : object_(object) {}

  const json& Get(const char* key) {
    static const json* const null = new json;
    const auto found = object_.is_object() ? object_.find(key) : object_.end();
    if (object_.is_object() && found != object_.end()) return *found;
    Fail(key);
    return *null;
  }
  int64_t Int(const char* key) {
    const json& value = Get(key);
    if (value.is_number_integer()) return value.get<int64_t>();
    Fail(key);
    return 0;
  }
  double Double(const char* key) { return AsDouble(key, Get(key)); }
  std::optional<double> Optional(const char* key) {
    const json& value = Get(key);
    if (value.is_null()) return std::nullopt;
    return AsDouble(key, value);
  }
  std::string String(const char* key) {
    const json& value = Get(key);
    if (value.is_string()) return value.get<std::string>();
    Fail(key);
    return "";
  }
  std::map<std::string, std::string> StringsByKey(const char* key) {
    std::map<std::string, std::string> strings;
    const json& object = Get(key);
    if (!object.is_object()) Fail(key);
    for (const auto& [name, text] : object.items()) {
      if (!text.is_string()) Fail(key);
      if (text.is_string()) strings[name] = text.get<std::string>();
    }
    return strings;
  }
  double AsDouble(const char* key, const json& value) {
    if (value.is_number()) return value.get<double>();
    if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (value == "inf") return std::numeric_limits<double>::infinity();
    if (value == "-inf") return -std::numeric_limits<double>::infinity();
    Fail(key);
    return 0;
  }
  void Fail(const char* key) {
    if (fault_.empty()) fault_ = key;
  }
  absl::Status status() const {
    if (fault_.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("its state has no sound \"", fault_, "\""));
  }

 private:
  const json& object_;
  std::string fault_;
};

absl::StatusOr<Measurement> ToMeasurement(const json& value) {
  Measurement measurement;
  ObjectReader reader(value);
  for (const json& sum : reader.Get("sums")) measurement.sums.push_back(reader.AsDouble("sums", sum));
  measurement.samples = reader.Int("samples");
  measurement.data_wait_seconds = reader.Double("data_wait_seconds");
  measurement.reduce_seconds = reader.Double("reduce_seconds");
  measurement.skipped_steps = reader.Int("skipped_steps");
  TANDEM_RETURN_IF_ERROR(reader.status());
  return measurement;
}

absl::StatusOr<EarlierEpochs> ToEarlierEpochs(const json& value) {
  EarlierEpochs part;
  ObjectReader reader(value);
  part.end = reader.Int("end");
  if (part.end < 0 || part.end > kMostSteps) reader.Fail("end");
  part.steps_per_epoch = reader.Int("steps_per_epoch");
  if (part.steps_per_epoch < 1 || part.steps_per_epoch > kMostSteps) reader.Fail("steps_per_epoch");
  part.epoch_shift = reader.Int("epoch_shift");
  if (part.epoch_shift < -part.end || part.epoch_shift > kMostShift) reader.Fail("epoch_shift");
  TANDEM_RETURN_IF_ERROR(reader.status());
  return part;
}

template <typename Message>
json FromMessage(const Message& message) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) text = "{}";
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

int64_t EpochShift(const TrainingState& state, int64_t steps_per_epoch) {
  if (state.steps_per_epoch == 0 || state.steps_per_epoch == steps_per_epoch) return state.epoch_shift;
  const int64_t steps = state.step + state.epoch_shift;
  const __int128 rest = steps % state.steps_per_epoch;
  const __int128 shift = static_cast<__int128>(steps / state.steps_per_epoch) * steps_per_epoch +
                         rest * steps_per_epoch / state.steps_per_epoch - state.step;
  return static_cast<int64_t>(std::min<__int128>(shift, kMostShift));
}

std::vector<double> SharesOf(const v1::Replicas& spec, const TrainingState& state) {
  std::vector<double> shares(state.epoch_shares.size(), 1.0);
  if (spec.parameter_averaging().weighted_by_load() && state.loads.size() == shares.size()) {
    shares = state.loads;
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

void ForgetResults(TrainingState* state) {
  state->summary.clear_validation();
  state->summary.clear_validation_step();
  state->summary.clear_best();
  state->ended_by.reset();
  state->early_stopping = {};
  state->plateau_measure.reset();
  if (!state->plateau.has_value()) return;
  state->plateau->best.reset();
  state->plateau->bad_epochs = 0;
}

std::string ToJson(const TrainingState& state) {
  json shares = json::array();
  for (const Measurement& share : state.epoch_shares) shares.push_back(FromMeasurement(share));
  json text = {{"step", state.step},
               {"steps_per_epoch", state.steps_per_epoch},
               {"end", {{"reason", v1::StateReason_Name(state.end.reason)}, {"message", state.end.message}}},
               {"epoch", {{"replicas", std::move(shares)}, {"seconds", state.epoch_seconds}}},
               {"loads", state.loads},
               {"samples", state.samples},
               {"summary", FromMessage(state.summary)},
               {"early_stopping",
                {{"best", FromOptional(state.early_stopping.best)},
                 {"best_step", state.early_stopping.best_step},
                 {"without_improvement", state.early_stopping.without_improvement}}},
               {"plateau_measure", FromOptional(state.plateau_measure)},
               {"aims",
                {{"best", state.aims.best},
                 {"early_stopping", state.aims.early_stopping},
                 {"plateau", state.aims.plateau}}},
               {"model", state.model},
               {"data", state.data}};
  if (state.epoch_shift != 0) text["epoch_shift"] = state.epoch_shift;
  for (const EarlierEpochs& part : state.earlier_epochs) {
    text["earlier_epochs"].push_back(
        {{"end", part.end}, {"steps_per_epoch", part.steps_per_epoch}, {"epoch_shift", part.epoch_shift}});
  }
  if (state.population_statistics) text["population_statistics"] = true;
  if (state.ended_by.has_value()) text["ended_by"] = FromMessage(*state.ended_by);
  if (state.plateau.has_value()) {
    text["plateau"] = {{"rate", FromDouble(state.plateau->rate)},
                       {"best", FromOptional(state.plateau->best)},
                       {"bad_epochs", state.plateau->bad_epochs},
                       {"cooldown_left", state.plateau->cooldown_left}};
  }
  return text.dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<TrainingState> TrainingStateFromJson(absl::string_view text) {
  const json parsed = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  TrainingState state;
  ObjectReader reader(parsed);
  state.step = reader.Int("step");
  if (state.step < 0 || state.step > kMostSteps) reader.Fail("step");
  state.samples = reader.Int("samples");
  state.plateau_measure = reader.Optional("plateau_measure");

  state.steps_per_epoch = reader.Int("steps_per_epoch");
  if (state.steps_per_epoch < 1 || state.steps_per_epoch > kMostSteps) reader.Fail("steps_per_epoch");
  if (parsed.is_object() && parsed.contains("epoch_shift")) {
    state.epoch_shift = reader.Int("epoch_shift");
    if (state.epoch_shift < -state.step || state.epoch_shift > kMostShift) {
      reader.Fail("epoch_shift");
    }
  }
  if (parsed.is_object() && parsed.contains("earlier_epochs")) {
    for (const json& part : parsed["earlier_epochs"]) {
      TANDEM_ASSIGN_OR_RETURN(state.earlier_epochs.emplace_back(), ToEarlierEpochs(part));
    }
  }

  ObjectReader end(reader.Get("end"));
  state.end.message = end.String("message");
  if (!v1::StateReason_Parse(end.String("reason"), &state.end.reason)) end.Fail("reason");

  ObjectReader epoch(reader.Get("epoch"));
  state.epoch_seconds = epoch.Double("seconds");
  for (const json& share : epoch.Get("replicas")) {
    TANDEM_ASSIGN_OR_RETURN(state.epoch_shares.emplace_back(), ToMeasurement(share));
  }

  for (const json& load : reader.Get("loads")) state.loads.push_back(reader.AsDouble("loads", load));

  if (parsed.is_object() && parsed.contains("population_statistics")) {
    const json& given = parsed["population_statistics"];
    if (!given.is_boolean()) reader.Fail("population_statistics");
    state.population_statistics = given == true;
  }
  if (parsed.is_object() && parsed.contains("ended_by")) {
    const std::string ended_by = parsed["ended_by"].dump();
    if (!google::protobuf::util::JsonStringToMessage(ended_by, &state.ended_by.emplace()).ok())
      reader.Fail("ended_by");
  }

  ObjectReader stopping(reader.Get("early_stopping"));
  state.early_stopping.best = stopping.Optional("best");
  state.early_stopping.best_step = stopping.Int("best_step");
  state.early_stopping.without_improvement = stopping.Int("without_improvement");

  if (parsed.is_object() && parsed.contains("plateau")) {
    ObjectReader plateau(parsed["plateau"]);
    state.plateau.emplace();
    state.plateau->rate = plateau.Double("rate");
    state.plateau->best = plateau.Optional("best");
    state.plateau->bad_epochs = plateau.Int("bad_epochs");
    state.plateau->cooldown_left = plateau.Int("cooldown_left");
    TANDEM_RETURN_IF_ERROR(plateau.status());
  }
  ObjectReader aims(reader.Get("aims"));
  state.aims.best = aims.String("best");
  state.aims.early_stopping = aims.String("early_stopping");
  state.aims.plateau = aims.String("plateau");
  state.model = reader.StringsByKey("model");
  state.data = reader.StringsByKey("data");
  const json& summary = reader.Get("summary");
  if (!google::protobuf::util::JsonStringToMessage(summary.dump(), &state.summary).ok())
    reader.Fail("summary");
  TANDEM_RETURN_IF_ERROR(reader.status());
  TANDEM_RETURN_IF_ERROR(end.status());
  TANDEM_RETURN_IF_ERROR(epoch.status());
  TANDEM_RETURN_IF_ERROR(stopping.status());
  TANDEM_RETURN_IF_ERROR(aims.status());
  return state;
}

}  // namespace tandem
