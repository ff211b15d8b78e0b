#ifndef TANDEM_CLIENT_DASHBOARD_DASHBOARD_H_
#define TANDEM_CLIENT_DASHBOARD_DASHBOARD_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "client/dashboard/access.h"
#include "client/dashboard/job_feed.h"
#include "client/dashboard/job_list.h"
#include "client/dashboard/web_server.h"
#include "client/lib/client.h"

namespace tandem::dashboard {

// A web page for one user's browser about a daemon's jobs. Its server makes the calls with the user's token,
// which never reaches the browser.
//
//   GET  /?key=KEY                       takes the key, which works once, and opens the page
//   GET  /, /page/FILE                   the page
//   POST /api/METHOD                     a unary call in JSON: CallInJson
//   GET  /api/job_file?name=jobs/ID      the job's file, as YAML
//   GET  /api/log?name=jobs/ID&offset=N  the job's log from there on; X-Log-End is the next offset
//   GET  /api/artifact?name=jobs/ID&artifact=FILE   a download
//   GET  /events/jobs                    JobList as Server-Sent Events: `jobs` and then `changes`,
//                                        {"rows": [...], "deleted": [...]}, and `connection`, an error or {}
//   GET  /events/job?name=jobs/ID&after=N           StreamJob
class Dashboard {
 public:
  // Serves on a numeric address. The client must outlive this object. FAILED_PRECONDITION as for
  // WebServer::Start, or if the program was built without the page.
  static absl::StatusOr<std::unique_ptr<Dashboard>> Start(client::Client* client, const std::string& host,
                                                          int port);
  // Ends all streams.
  ~Dashboard();

  // Returns "http://127.0.0.1:7449/?key=KEY", for the user's own browser only.
  std::string Url() const;

 private:
  Dashboard(client::Client* client, std::string host)
      : client_(client), host_(std::move(host)), jobs_(client), feeds_(client) {}

  void Handle(const WebRequest& request, WebAnswer& answer);
  void SendFile(absl::string_view name, WebAnswer& answer);
  void SendCall(const WebRequest& request, WebAnswer& answer);
  void SendJobFile(const WebRequest& request, WebAnswer& answer);
  void SendLog(const WebRequest& request, WebAnswer& answer);
  void SendArtifact(const WebRequest& request, WebAnswer& answer);
  void StreamJobs(WebAnswer& answer);

  client::Client* const client_;
  const std::string host_;
  JobList jobs_;
  JobFeeds feeds_;
  std::unique_ptr<Access> access_;
  // Notified when access_ exists. access_ needs the server's port.
  absl::Notification is_ready_;
  std::atomic<bool> is_stopping_ = false;
  // Declared last: its threads use the other members.
  std::unique_ptr<WebServer> server_;
};

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_DASHBOARD_H_
