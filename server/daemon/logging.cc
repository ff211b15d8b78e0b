#include "server/daemon/logging.h"
#include "third_party/spdlog/log.h"

#include <grpc/support/log.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace tandem {
namespace {

// Formats "%*" as the message in a JSON string.
class JsonMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string text(message.payload.data(), message.payload.size());
    const std::string quoted =
        nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.append(quoted.data(), quoted.data() + quoted.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JsonMessage>(); }
};

void LogOfGrpc(gpr_log_func_args* args) { spdlog::debug("grpc: {}", args->message); }

}  // namespace

void SetUpLogging(const std::string& level, const std::string& format) {
  auto logger =
      std::make_shared<spdlog::logger>("tandemd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<JsonMessage>('*');
  formatter->set_pattern(format == "json" ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%*})"
                                          : "%Y-%m-%dT%H:%M:%S.%eZ %l %v");
  logger->set_formatter(std::move(formatter));
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
  gpr_set_log_function(&LogOfGrpc);
}

}  // namespace tandem
