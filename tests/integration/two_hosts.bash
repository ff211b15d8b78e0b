# Two hosts for a script that has sourced daemon.bash: a pair of virtual links joins two network namespaces. Source this
# file with the first three numbers of the hosts' addresses. Skips the script if this machine cannot make the hosts, or
# if openssl is missing. The hosts end with the script.
#
#   source two_hosts.bash 10.97.31      $server_side has the address 10.97.31.1, $client_side has 10.97.31.2
((EUID == 0)) || skip "needs root, for network namespaces"
command -v ip >/dev/null || skip "needs ip (iproute2)"
command -v openssl >/dev/null || skip "needs openssl"

server_side=tandem-server-$$
client_side=tandem-client-$$
extra_cleanup() {
  ip netns delete "$server_side" 2>/dev/null || true
  ip netns delete "$client_side" 2>/dev/null || true
}
ip netns add "$server_side" 2>/dev/null || skip "may not make network namespaces here"
ip netns add "$client_side"
ip link add "veth-$$" netns "$server_side" type veth peer name "veth-$$" netns "$client_side" 2>/dev/null ||
  skip "may not make virtual links here"
for side in "$server_side $1.1" "$client_side $1.2"; do
  read -r name ip_address <<<"$side"
  ip -n "$name" address add "$ip_address/24" dev "veth-$$"
  ip -n "$name" link set "veth-$$" up
  ip -n "$name" link set lo up
done
