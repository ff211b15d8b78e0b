// The devices: who holds them, their load, and why one is out of service. Also the partitions of the daemon's cluster.

import {call} from "./api.js";
import {change, h, table, update} from "./dom.js";
import {bytes, duration, id, shortEnum} from "./format.js";
import {poll} from "./poll.js";

export function showDevices({root, say, signal, user}) {
  document.title = "Devices · Tandem";
  const problem = h("p", {class: "error", role: "alert"}),
    list = h("div"),
    cluster = h("div");
  root.append(h("h1", {}, "Devices"), problem, list, cluster);

  const act = (method, name, question, action, field) =>
    change(
      question,
      action,
      field,
      async (answer) => {
        await call(method, typeof answer === "string" ? {name, reason: answer} : {name}, signal);
        await read();
      },
      {problem, signal},
    );
  const button = (device) => {
    if (user.role !== "ADMIN") return "";
    return device.state === "DEVICE_STATE_ACTIVE"
      ? h(
          "button",
          {
            type: "button",
            onclick: () =>
              act(
                "DrainDevice",
                device.name,
                `Drain ${id(device.name)}? It takes no new jobs; its present jobs continue. Why?`,
                "Drain",
                {type: "text", maxlength: 200},
              ),
          },
          "Drain",
        )
      : h(
          "button",
          {
            type: "button",
            onclick: () =>
              act("ResumeDevice", device.name, `Resume ${id(device.name)}? It takes jobs again.`, "Resume"),
          },
          "Resume",
        );
  };
  const load = ({gpu, leased_share: share, threads}) =>
    gpu
      ? [
          gpu.utilization_percent !== undefined && `${gpu.utilization_percent} %`,
          gpu.temperature_celsius !== undefined && `${gpu.temperature_celsius} °C`,
          gpu.power_watts !== undefined && `${Math.round(gpu.power_watts)} W`,
        ]
          .filter(Boolean)
          .join(", ")
      : `${Math.round(100 * (share ?? 0))} % leased${threads ? `, ${threads} ${threads === 1 ? "thread" : "threads"}` : ""}`;
  const memory = ({gpu, memory_bytes: all, leased_memory_bytes: leased}) =>
    gpu?.used_memory_bytes !== undefined
      ? `${bytes(gpu.used_memory_bytes)} of ${bytes(gpu.total_memory_bytes)}`
      : `${bytes(leased)} of ${bytes(all)} leased`;

  async function read() {
    const {devices = [], partitions = [], partitions_message: trouble} = await call("ListDevices", {}, signal);
    update(list, JSON.stringify(devices), () =>
      table(
        "Devices",
        [
          {title: "Device"},
          {title: "Model"},
          {title: "State"},
          {title: "Held by"},
          {title: "Load"},
          {title: "Memory"},
          {title: ""},
        ],
        devices.map((device) => ({
          cells: [
            id(device.name),
            device.model ?? "",
            [
              shortEnum(device.state, "DEVICE_STATE_"),
              device.state_message ? `: ${device.state_message}` : "",
              device.faults ? ` (${device.faults} faults)` : "",
            ].join(""),
            [...new Set(device.jobs ?? (device.job ? [device.job] : []))].map((job) => [
              h("a", {href: `#/jobs/${id(job)}`}, id(job)),
              " ",
            ]),
            load(device),
            memory(device),
            button(device),
          ],
        })),
      ),
    );
    update(cluster, JSON.stringify([partitions, trouble]), () => [
      (trouble || partitions.length > 0) && h("h2", {}, "Cluster"),
      trouble && h("p", {class: "error"}, trouble),
      partitions.length > 0 &&
        table(
          "Partitions",
          [
            {title: "Partition"},
            {title: "State"},
            {title: "Free nodes", number: true},
            {title: "Cores", number: true},
            {title: "GPUs", number: true},
            {title: "Time limit", number: true},
          ],
          partitions.map((one) => ({
            cells: [
              `${one.name}${one.is_default ? " (default)" : ""}`,
              one.is_up ? "up" : "down",
              `${one.free_nodes ?? 0}/${one.nodes ?? 0}`,
              one.cpus_per_node ?? 0,
              one.gpus_per_node ?? 0,
              duration(one.time_limit_seconds),
            ],
          })),
        ),
    ]);
  }
  poll(read, 2000, {say, signal});
}
