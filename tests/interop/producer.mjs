// Enqueues tasks from Node. All it knows of taskbatch is task.proto and the name of one list.
//
//   npm install
//   node producer.mjs --url redis://127.0.0.1:6379 --queue default --type demo.count --count 3
//
// --payload JSON   what each job is given, with the task's position added as "n"   ({})
// --header k=v     repeatable: sent as a header of every task
// --proto FILE     the contract, if it is not in its place in this repository
// --print          enqueue nothing, write one hexadecimal task a line instead
//
// Prints the ids, one a line, in the order in which the tasks will be run.

import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createClient } from "@redis/client";
import protobuf from "protobufjs";

const PROTO = fileURLToPath(new URL("../../proto/taskbatch/v1/task.proto", import.meta.url));

const { values: options } = parseArgs({
  options: {
    url: { type: "string", default: "redis://127.0.0.1:6379" },
    queue: { type: "string", default: "default" },
    type: { type: "string" },
    count: { type: "string", default: "1" },
    payload: { type: "string", default: "{}" },
    header: { type: "string", multiple: true, default: [] },
    proto: { type: "string", default: PROTO },
    print: { type: "boolean", default: false },
  },
});
if (!options.type) throw new Error("--type is missing: which job is to run?");

const Task = (await protobuf.load(options.proto)).lookupType("taskbatch.v1.Task");
const headers = Object.fromEntries(options.header.map((header) => header.split(/=(.*)/s, 2)));

const tasks = Array.from({ length: Number(options.count) }, (_, n) => ({
  id: randomUUID(),
  type: options.type,
  payload: Buffer.from(JSON.stringify({ ...JSON.parse(options.payload), n })),
  contentType: "application/json",
  enqueuedAtMs: Date.now(),
  headers,
}));
const encoded = tasks.map((task) => Buffer.from(Task.encode(Task.create(task)).finish()));

if (options.print) {
  for (const bytes of encoded) console.log(bytes.toString("hex"));
} else {
  const redis = await createClient({ url: options.url }).on("error", console.error).connect();
  // Pushed on the left, run from the right: first in, first out. The braces are part of the name.
  if (encoded.length) await redis.lPush(`taskbatch:{${options.queue}}:pending`, encoded);
  await redis.close();
  for (const task of tasks) console.log(task.id);
}
