#include "server/rpc/connection_calls.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace tandem {
namespace {

using nlohmann::json;

// Takes ownership of gRPC's text. A null or invalid text gives an empty object.
json Parse(char* text) {
  json parsed = text == nullptr ? json() : json::parse(text, nullptr, /*allow_exceptions=*/false);
  gpr_free(text);
  return parsed.is_object() ? std::move(parsed) : json::object();
}

// Returns a number, which gRPC writes as text; 0 if missing.
int64_t NumberOf(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return 0;
  if (found->is_number()) return found->get<int64_t>();
  int64_t number = 0;
  return found->is_string() && absl::SimpleAtoi(found->get_ref<const std::string&>(), &number) ? number : 0;
}

const json& Member(const json& object, const char* key) {
  static const json* const nothing = new json(json::object());
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : *nothing;
}

std::vector<int64_t> IdsIn(const json& page, const char* list, const char* reference, const char* key) {
  std::vector<int64_t> ids;
  const auto found = page.find(list);
  if (found == page.end() || !found->is_array()) return ids;
  for (const json& element : *found) {
    ids.push_back(NumberOf(reference == nullptr ? element : Member(element, reference), key));
  }
  return ids;
}

// Bounds how long an address stays restricted after it exceeded its limit.
constexpr absl::Duration kRemembered = absl::Seconds(10);

// A process that uses less than 1 / kIdlePart of a core is nearly idle, and looks once per kIdleInterval.
constexpr int kIdlePart = 10;
constexpr absl::Duration kIdleInterval = absl::Seconds(1);

// The source of all loopback connections.
constexpr absl::string_view kLoopback = "loopback";

constexpr char kMappedPrefix[] = "\0\0\0\0\0\0\0\0\0\0\xff\xff";

}  // namespace

std::vector<ConnectionCalls> LookAtConnections() {
  constexpr int64_t kPage = 1000;
  std::vector<ConnectionCalls> connections;
  const json servers = Parse(grpc_channelz_get_servers(0));
  for (const int64_t server : IdsIn(servers, "server", "ref", "serverId")) {
    for (int64_t next = 0; next >= 0;) {
      const json page = Parse(grpc_channelz_get_server_sockets(server, next, kPage));
      const std::vector<int64_t> ids = IdsIn(page, "socketRef", nullptr, "socketId");
      next = ids.size() < kPage ? -1 : ids.back() + 1;
      for (const int64_t id : ids) {
        const json answer = Parse(grpc_channelz_get_socket(id));
        const json& socket = Member(answer, "socket");
        const json& remote = Member(Member(socket, "remote"), "tcpip_address");
        ConnectionCalls connection;
        const auto ip = remote.find("ip_address");
        if (ip == remote.end() || !ip->is_string() ||
            !absl::Base64Unescape(ip->get_ref<const std::string&>(), &connection.peer.ip)) {
          continue;
        }
        if (connection.peer.ip.size() == 16 && connection.peer.ip.compare(0, 12, kMappedPrefix, 12) == 0) {
          connection.peer.ip.erase(0, 12);
        }
        connection.peer.port = static_cast<int>(NumberOf(remote, "port"));
        const json& data = Member(socket, "data");
        connection.number = id;
        connection.begun = NumberOf(data, "streamsStarted");
        connection.answered = NumberOf(data, "streamsSucceeded");
        connections.push_back(std::move(connection));
      }
    }
  }
  return connections;
}

bool IsLoopback(const std::string& ip) {
  static const std::string* const wide = new std::string(std::string(15, '\0') + '\1');
  return ip.size() == 4 ? ip[0] == 127 : ip == *wide;
}

std::string SourceOf(const std::string& ip) { return ip.size() == 16 ? ip.substr(0, 8) : ip; }

Harm UnansweredCalls::Excess(const std::vector<ConnectionCalls>& looked, absl::Duration now) {
  const double leaves =
      std::isfinite(absl::ToDoubleSeconds(last_)) ? limits_.rate * absl::ToDoubleSeconds(now - last_) : 0;
  last_ = now;
  absl::flat_hash_map<int64_t, Line> lines;
  for (const ConnectionCalls& connection : looked) {
    Line line{.source =
                  IsLoopback(connection.peer.ip) ? std::string(kLoopback) : SourceOf(connection.peer.ip)};
    if (auto known = lines_.extract(connection.number); !known.empty()) {
      line = std::move(known.mapped());
      line.is_new = false;
    }
    const int64_t unanswered = connection.begun - connection.answered;
    line.level = std::max(0.0, line.level - leaves + static_cast<double>(unanswered - line.unanswered));
    line.unanswered = unanswered;
    lines[connection.number] = std::move(line);
  }
  // The remaining lines belong to closed connections. The bound lets an address recover soon, however long
  // its attack was.
  const double most = limits_.of_address + limits_.rate * absl::ToDoubleSeconds(kRemembered);
  for (const auto& [number, line] : lines_) {
    if (line.level <= 0) continue;
    double& closed = closed_[line.source];
    closed = std::min(most, closed + line.level);
  }
  lines_ = std::move(lines);
  absl::erase_if(closed_, [leaves](auto& one) { return (one.second -= leaves) <= 0; });
  absl::flat_hash_map<std::string, double> sources = closed_;
  for (const auto& [number, line] : lines_) sources[line.source] += line.level;
  Harm harm;
  for (const auto& [source, level] : sources) harm.is_likely = harm.is_likely || level > limits_.rate;
  for (const ConnectionCalls& connection : looked) {
    const Line& line = lines_[connection.number];
    if (line.level > limits_.of_connection ||
        (sources[line.source] > limits_.of_address &&
         (line.level > limits_.rate ||
          (connection.begun == 0 && !line.is_new && line.source != kLoopback)))) {
      harm.peers.push_back(connection.peer);
    }
  }
  return harm;
}

bool LookTimes::MustLook(absl::Duration now, absl::Duration used) {
  const bool is_idle = (used - last_used_) * kIdlePart < now - last_call_;
  last_call_ = now;
  last_used_ = used;
  if (is_idle && now - last_look_ < kIdleInterval) return false;
  last_look_ = now;
  return true;
}

}  // namespace tandem
