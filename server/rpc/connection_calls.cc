#include "server/rpc/connection_calls.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

namespace tandem {
namespace {

using nlohmann::json;

// Takes over what gRPC wrote; null or broken texts are an empty object.
json Parse(char* text) {
  json parsed = text == nullptr ? json() : json::parse(text, nullptr, /*allow_exceptions=*/false);
  gpr_free(text);
  return parsed.is_object() ? std::move(parsed) : json::object();
}

// Numbers are texts there; 0 where there is none.
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

std::vector<PeerAddress> UnansweredCalls::Excess(const std::vector<ConnectionCalls>& looked,
                                                 absl::Duration now) {
  const double leaves =
      std::isfinite(absl::ToDoubleSeconds(last_)) ? limits_.rate * absl::ToDoubleSeconds(now - last_) : 0;
  last_ = now;
  absl::flat_hash_map<int64_t, Line> lines;
  absl::flat_hash_map<std::string, double> addresses;
  for (const ConnectionCalls& connection : looked) {
    Line line;
    if (const auto known = lines_.find(connection.number); known != lines_.end()) line = known->second;
    const int64_t unanswered = connection.begun - connection.answered;
    line.level = std::max(0.0, line.level - leaves + static_cast<double>(unanswered - line.unanswered));
    line.unanswered = unanswered;
    addresses[connection.peer.ip] += line.level;
    lines[connection.number] = line;
  }
  std::vector<PeerAddress> excess;
  for (const ConnectionCalls& connection : looked) {
    const double level = lines[connection.number].level;
    if (level > limits_.of_connection ||
        (addresses[connection.peer.ip] > limits_.of_address && level > limits_.rate)) {
      excess.push_back(connection.peer);
    }
  }
  lines_ = std::move(lines);
  return excess;
}

}  // namespace tandem
