// An agent of @a2a-js/sdk, over both bindings. It answers "slow …" when the file DONE exists, and
// everything else at once.
import { existsSync } from "node:fs";
import { randomUUID } from "node:crypto";
import express from "express";
import { TaskState } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";

const { ADDRESS, BINDING, DONE, TOKEN } = process.env;
const [host, port] = ADDRESS.split(":");
const base = `http://${ADDRESS}/agent`;
const text = (value) => ({ content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "text/plain" });
const card = {
  name: "Weather", description: "Forecasts", version: "1", provider: undefined, capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  supportedInterfaces: [{ url: BINDING === "JSONRPC" ? `${base}/rpc` : `${base}/rest`, protocolBinding: BINDING, tenant: "", protocolVersion: "1.0" }],
  securitySchemes: {}, securityRequirements: [], defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"], signatures: [],
  skills: [{ id: "f", name: "Forecast", description: "Forecasts", tags: [], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
};

const executor = {
  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const said = userMessage.parts.map((p) => p.content.value).join(" ");
    const status = (state) => ({ state, message: undefined, timestamp: new Date().toISOString() });
    bus.publish(AgentEvent.task({
      id: taskId, contextId, status: status(TaskState.TASK_STATE_WORKING), artifacts: [], history: [userMessage], metadata: undefined,
    }));
    while (said.startsWith("slow") && !existsSync(DONE)) await new Promise((done) => setTimeout(done, 100));
    bus.publish(AgentEvent.artifactUpdate({
      taskId, contextId, append: false, lastChunk: true, metadata: undefined,
      artifact: { artifactId: randomUUID(), name: "answer", description: "", parts: [text(`it rains on ${said}`)], metadata: undefined, extensions: [] },
    }));
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(TaskState.TASK_STATE_COMPLETED), metadata: undefined }));
    bus.finished();
  },
  async cancelTask() {},
};

const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const app = express();
app.use((req, res, next) => (req.headers.authorization === `Bearer ${TOKEN}` ? next() : res.status(401).end()));
app.use("/agent/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: handler }));
app.use("/agent/rpc", jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
app.use("/agent/rest", restHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
app.listen(Number(port), host, () => console.log("ready"));
