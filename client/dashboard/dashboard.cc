#include "client/dashboard/dashboard.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/dashboard/calls.h"
#include "client/dashboard/job_stream.h"
#include "client/dashboard/page_files.h"
#include "proto/job_file/yaml_writer.h"

namespace tandem::dashboard {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kEvents[] = "text/event-stream";
// The largest part of a log in an answer.
constexpr size_t kMostLogBytes = 1 << 20;
constexpr absl::Duration kRowsInterval = absl::Milliseconds(250);
// A write notices that a browser has left.
constexpr absl::Duration kRowsHeartbeat = absl::Seconds(5);
constexpr size_t kRowsTogether = 1000;

void SendError(const absl::Status& status, WebAnswer& answer) {
  answer.Send(HttpStatus(status), kJson, ErrorInJson(status));
}

// Returns a name that is safe in a header and in a file system.
std::string SafeFileName(absl::string_view name) {
  std::string safe;
  for (const char c : name.substr(name.rfind('/') + 1)) {
    safe.push_back(std::isalnum(static_cast<unsigned char>(c)) || absl::StrContains("._-", c) ? c : '_');
  }
  return safe;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dashboard>> Dashboard::Start(client::Client* client, const std::string& host,
                                                            int port) {
  if (!HasPage()) {
    return absl::FailedPreconditionError(
        "cannot show the dashboard: this program was built without its page, because uPlot was missing; "
        "install npm, "
        "run deploy/setup.sh and build again");
  }
  auto dashboard = std::unique_ptr<Dashboard>(new Dashboard(client, host));
  absl::StatusOr<std::unique_ptr<WebServer>> server =
      WebServer::Start(host, port, [self = dashboard.get()](const WebRequest& request, WebAnswer& answer) {
        self->Handle(request, answer);
      });
  if (!server.ok()) return server.status();
  dashboard->server_ = *std::move(server);
  const std::string suffix = absl::StrCat(":", dashboard->server_->port());
  const std::string shown = absl::StrContains(host, ':') ? absl::StrCat("[", host, "]") : host;
  dashboard->access_ =
      std::make_unique<Access>(std::vector<std::string>{shown + suffix, "localhost" + suffix});
  dashboard->is_ready_.Notify();
  return dashboard;
}

Dashboard::~Dashboard() {
  is_stopping_ = true;
  server_ = nullptr;
}

std::string Dashboard::Url() const {
  const std::string shown = absl::StrContains(host_, ':') ? absl::StrCat("[", host_, "]") : host_;
  return absl::StrCat("http://", shown, ":", server_->port(), "/?key=", access_->key());
}

void Dashboard::Handle(const WebRequest& request, WebAnswer& answer) {
  is_ready_.WaitForNotification();
  if (const std::string key = request.Parameter("key");
      request.path == "/" && request.method == "GET" && !key.empty()) {
    // The redirect removes the key from the address, because people share addresses. The answer has no other
    // part of the request.
    if (const std::optional<std::string> cookie = access_->Exchange(key); cookie.has_value())
      return answer.Send(303, kText, "", {{"Location", "/"}, {"Set-Cookie", *cookie}});
  }
  if (const std::optional<Access::Refusal> refusal = access_->Check(request); refusal.has_value())
    return answer.Send(refusal->status, kText, refusal->text);

  absl::string_view path = request.path;
  if (request.method == "POST" && absl::StartsWith(path, "/api/")) return SendCall(request, answer);
  if (request.method != "GET" && request.method != "HEAD")
    return answer.Send(405, kText, "cannot answer: only GET, and POST of calls, are served\n");
  if (path == "/") return SendFile("index.html", answer);
  if (path == "/api/job_file") return SendJobFile(request, answer);
  if (path == "/api/log") return SendLog(request, answer);
  if (path == "/api/artifact") return SendArtifact(request, answer);
  if (path == "/events/jobs") return StreamJobs(answer);
  if (path == "/events/job") {
    int64_t after = 0;
    if (!absl::SimpleAtoi(request.Parameter("after"), &after) || after < 0) after = 0;
    if (answer.Begin(kEvents, {}))
      StreamJob(
          *client_, feeds_, request.Parameter("name"), after, /*once=*/request.Parameter("once") == "1",
          [this] { return !is_stopping_; }, answer);
    return;
  }
  if (absl::ConsumePrefix(&path, "/page/")) return SendFile(path, answer);
  answer.Send(404, kText, "cannot find this: the dashboard's address is /\n");
}

void Dashboard::SendFile(absl::string_view name, WebAnswer& answer) {
  const PageFile* const file = FindPageFile(name);
  if (file == nullptr) return answer.Send(404, kText, "cannot find this: the page has no such file\n");
  answer.Send(200, file->type, file->content);
}

void Dashboard::SendCall(const WebRequest& request, WebAnswer& answer) {
  const absl::StatusOr<std::string> result =
      CallInJson(*client_, absl::StripPrefix(request.path, "/api/"), request.body);
  if (!result.ok()) return SendError(result.status(), answer);
  answer.Send(200, kJson, *result);
}

void Dashboard::SendJobFile(const WebRequest& request, WebAnswer& answer) {
  const absl::StatusOr<v1::Job> job = client_->GetJob(request.Parameter("name"));
  if (!job.ok()) return SendError(job.status(), answer);
  answer.Send(200, kText, ToYaml(job->spec()));
}

void Dashboard::SendLog(const WebRequest& request, WebAnswer& answer) {
  int64_t offset = 0;
  if (!absl::SimpleAtoi(request.Parameter("offset"), &offset) || offset < 0) offset = 0;
  std::string text;
  client::ObserverWhile limits([&] { return !is_stopping_ && text.size() < kMostLogBytes; });
  const absl::Status status = client_->ReadLog(request.Parameter("name"), /*rank=*/0, offset,
                                               /*follow=*/false, limits, [&](absl::string_view piece) {
                                                 absl::StrAppend(&text, piece);
                                                 return absl::OkStatus();
                                               });
  if (!status.ok() && !absl::IsCancelled(status)) return SendError(status, answer);
  answer.Send(200, kText, text, {{"X-Log-End", absl::StrCat(offset + static_cast<int64_t>(text.size()))}});
}

void Dashboard::SendArtifact(const WebRequest& request, WebAnswer& answer) {
  const std::string artifact = request.Parameter("artifact");
  bool has_begun = false;
  client::ObserverWhile limits([this] { return !is_stopping_; });
  const absl::Status status = client_->ReadArtifact(
      request.Parameter("name"), artifact, 0, limits,
      [&](const v1::ReadArtifactResponse& piece) -> absl::Status {
        if (!has_begun) {
          has_begun = true;
          if (!answer.Begin("application/octet-stream",
                            {{"Content-Disposition",
                              absl::StrCat("attachment; filename=\"", SafeFileName(artifact), "\"")},
                             {"Content-Length", absl::StrCat(piece.size_bytes())}})) {
            return absl::CancelledError("the browser is gone");
          }
        }
        return answer.Write(piece.data()) ? absl::OkStatus() : absl::CancelledError("the browser is gone");
      });
  // After the start of an answer, only its missing end can show the error.
  if (!status.ok() && !has_begun) SendError(status, answer);
}

void Dashboard::StreamJobs(WebAnswer& answer) {
  if (!answer.Begin(kEvents, {})) return;
  JobList::View view(&jobs_);
  int64_t version = -1;
  bool is_first = true;
  std::string said;
  absl::Duration silent;
  while (!is_stopping_) {
    const JobList::Changes changes = view.Await(version, kRowsInterval);
    std::string text;
    if (const std::string connection = changes.connection.ok() ? "{}" : ErrorInJson(changes.connection);
        connection != said) {
      said = connection;
      absl::StrAppend(&text, "event: connection\ndata: ", connection, "\n\n");
    }
    const bool is_complete = is_first && changes.version > version;
    for (size_t i = 0; i < changes.rows.size() || (i == 0 && (is_complete || !changes.deleted.empty()));
         i += kRowsTogether) {
      const size_t end = std::min(changes.rows.size(), i + kRowsTogether);
      absl::StrAppend(&text, "event: ", is_first ? "jobs" : "changes", "\ndata: {\"rows\":[",
                      absl::StrJoin(changes.rows.begin() + static_cast<std::ptrdiff_t>(std::min(i, end)),
                                    changes.rows.begin() + static_cast<std::ptrdiff_t>(end), ","),
                      "]");
      if (i == 0 && !changes.deleted.empty()) {
        absl::StrAppend(&text, ",\"deleted\":[\"", absl::StrJoin(changes.deleted, "\",\""), "\"]");
      }
      if (is_complete && end == changes.rows.size()) text.append(",\"complete\":true");
      text.append("}\n\n");
    }
    if (is_complete) is_first = false;
    const bool has_news = changes.version > version;
    version = changes.version;
    silent = text.empty() ? silent + kRowsInterval : absl::ZeroDuration();
    if (silent >= kRowsHeartbeat) {
      text = ":\n\n";
      silent = absl::ZeroDuration();
    }
    if (!text.empty() && !answer.Write(text)) return;
    // Sends at most four times a second.
    if (has_news) absl::SleepFor(kRowsInterval);
  }
}

}  // namespace tandem::dashboard
