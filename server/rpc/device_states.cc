#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/utf8.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {
namespace {

constexpr size_t kMaxReasonCharacters = 200;

// Counts a byte that belongs to no character as one.
size_t CharactersOf(absl::string_view text) {
  size_t characters = 0;
  for (; !text.empty(); ++characters) TakeCodePoint(&text);
  return characters;
}

void SetState(const std::string& name, v1::DeviceState state, const std::string& reason,
              Reply<v1::Device> reply, Scheduler* scheduler) {
  absl::Status status;
  if (!absl::StartsWith(name, "devices/")) {
    status = FieldError(
        "name", absl::StrCat("is '", absl::CHexEscape(name.substr(0, 80)),
                             "', which is not the name of a device; write \"devices/<kind>:<index>\""));
  }
  if (const size_t characters = CharactersOf(reason); status.ok() && characters > kMaxReasonCharacters) {
    status = FieldError("reason", absl::StrCat("has ", characters, " characters; at most ",
                                               kMaxReasonCharacters, " are allowed"));
  }
  if (!status.ok()) return reply(std::move(status));
  scheduler->SetDeviceState(name, state, reason,
                            [reply = std::move(reply)](absl::StatusOr<v1::Device> device) mutable {
                              if (absl::IsNotFound(device.status())) {
                                device = WithReason(device.status(), "DEVICE_NOT_FOUND");
                              }
                              reply(std::move(device));
                            });
}

}  // namespace

void DrainDevice(const Caller& /*caller*/, const v1::DrainDeviceRequest& request, Reply<v1::Device> reply,
                 Scheduler* scheduler) {
  SetState(request.name(), v1::DEVICE_STATE_DRAINED, request.reason(), std::move(reply), scheduler);
}

void ResumeDevice(const Caller& /*caller*/, const v1::ResumeDeviceRequest& request, Reply<v1::Device> reply,
                  Scheduler* scheduler) {
  SetState(request.name(), v1::DEVICE_STATE_ACTIVE, "", std::move(reply), scheduler);
}

void ExcludeDevice(const Caller& /*caller*/, const v1::ExcludeDeviceRequest& request, Reply<v1::Device> reply,
                   Scheduler* scheduler) {
  SetState(request.name(), v1::DEVICE_STATE_EXCLUDED, request.reason(), std::move(reply), scheduler);
}

}  // namespace tandem::rpc
