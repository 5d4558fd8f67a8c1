// What the unmodified client of @a2a-js/sdk does with a published agent, over both bindings.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { Role, TaskState } from "@a2a-js/sdk";
import {
  ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory,
} from "@a2a-js/sdk/client";

const { BASE, TOKEN, NOTIFY } = process.env;
const fetchImpl = (url, init = {}) => fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${TOKEN}` } });
const bindings = { JSONRPC: new JsonRpcTransportFactory({ fetchImpl }), "HTTP+JSON": new RestTransportFactory({ fetchImpl }) };

const message = (text, more = {}) => ({
  messageId: randomUUID(), contextId: "", taskId: "", role: Role.ROLE_USER, metadata: undefined, extensions: [], referenceTaskIds: [],
  parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }], ...more,
});
const request = (m, configuration) => ({
  tenant: "", message: m, metadata: undefined,
  configuration: { acceptedOutputModes: ["text/plain"], returnImmediately: false, taskPushNotificationConfig: undefined, ...configuration },
});
const answer = (task) => task.artifacts.map((a) => a.parts.map((p) => p.content.value).join("")).join("");

// Notifications come to a server of this script.
const notified = [];
const receiver = createServer((req, res) => {
  let body = "";
  req.on("data", (piece) => (body += piece));
  req.on("end", () => { notified.push({ headers: req.headers, body: JSON.parse(body) }); res.end(); });
});
const [host, port] = NOTIFY.split(":");
await new Promise((done) => receiver.listen(Number(port), host, done));
const until = async (what) => {
  for (let n = 0; n < 600; n++) {
    const found = what();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.fail(`${what} did not happen`);
};

for (const [name, transport] of Object.entries(bindings)) {
  const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [transport], preferredTransports: [name], cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  }));
  const client = await factory.createFromUrl(`${BASE}/a2a/Ada/`);
  const card = await client.getAgentCard();
  assert.equal(card.name, "Ada");
  assert.equal(card.skills.length, 1);
  assert.equal(client.protocolVersion, "1.0");

  // a task, as a whole
  const first = message("alpha", { contextId: "talk-1" });
  const task = await client.sendMessage(request(first));
  assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
  assert.equal(answer(task), "heard alpha");
  assert.equal(task.contextId, "talk-1");
  assert.equal(task.history[0].messageId, first.messageId);

  // the same message is the same task
  const again = await client.sendMessage(request(first));
  assert.equal(again.id, task.id);
  assert.equal((await client.getTask({ tenant: "", id: task.id, historyLength: 0 })).history.length, 0);

  // a stream: the task, that it is worked on, pieces of the answer, the end
  const kinds = [];
  let text = "";
  let last;
  for await (const e of client.sendMessageStream(request(message("bravo", { contextId: "talk-1" })))) {
    kinds.push(e.payload.$case);
    if (e.payload.$case === "artifactUpdate") {
      const piece = e.payload.value.artifact.parts[0].content.value;
      text = e.payload.value.append ? text + piece : piece;
    }
    last = e.payload.value;
  }
  assert.equal(kinds[0], "task");
  assert.ok(kinds.filter((k) => k === "artifactUpdate").length >= 2, kinds.join(" "));
  assert.equal(text, "heard bravo");
  assert.equal(last.status.state, TaskState.TASK_STATE_COMPLETED);

  // canceled while it is worked on, and while it waits
  const slow = await client.sendMessage(request(message("slow"), { returnImmediately: true }));
  const queued = await client.sendMessage(request(message("charlie"), { returnImmediately: true }));
  assert.equal((await client.cancelTask({ tenant: "", id: queued.id, metadata: undefined })).status.state, TaskState.TASK_STATE_CANCELED);
  for (;;) {
    const now = await client.getTask({ tenant: "", id: slow.id });
    if (now.status.state === TaskState.TASK_STATE_WORKING) break;
  }
  const seen = [];
  const watching = (async () => {
    for await (const e of client.resubscribeTask({ tenant: "", id: slow.id })) seen.push(e.payload.value);
  })();
  await until(() => seen.length > 0);
  const canceled = await client.cancelTask({ tenant: "", id: slow.id, metadata: undefined });
  assert.equal(canceled.status.state, TaskState.TASK_STATE_CANCELED);
  await watching;
  assert.equal(seen.at(-1).status.state, TaskState.TASK_STATE_CANCELED);

  // a notification
  notified.length = 0;
  const push = { tenant: "", id: "", taskId: "", url: `http://${NOTIFY}/answers`, token: "mine", authentication: undefined };
  const watched = await client.sendMessage(request(message("delta"), { returnImmediately: true, taskPushNotificationConfig: push }));
  const told = await until(() => notified[0]);
  assert.equal(told.headers["x-a2a-notification-token"], "mine");
  assert.equal(told.body.task.id, watched.id);
  assert.equal(told.body.task.status.state, "TASK_STATE_COMPLETED");
  assert.equal(told.body.task.artifacts[0].parts[0].text, "heard delta");
  await assert.rejects(client.sendMessage(request(message("x"), { taskPushNotificationConfig: { ...push, url: "http://169.254.169.254/" } })));

  // its tasks, the newest first
  const list = await client.listTasks({ tenant: "", contextId: "talk-1", status: 0, pageToken: "", statusTimestampAfter: undefined, includeArtifacts: true });
  assert.ok(list.tasks.length >= 2);
  assert.equal(answer(list.tasks[0]), "heard bravo");

  await assert.rejects(client.getTask({ tenant: "", id: "none" }), /TaskNotFound|no such task/);
  await assert.rejects(client.cancelTask({ tenant: "", id: task.id, metadata: undefined }), /NotCancelable|COMPLETED/);
  console.log(`${name}: ok`);
}
receiver.close();
