// The official TypeScript client as an editor: what it sees of a session is checked here, step by
// step. Run by TestTypeScriptClientOfACP; the arguments are the SDK, the workspace, the program.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, workspace, program] = process.argv.slice(2);
const acp = await import(pathToFileURL(`${sdk}/dist/v1/stable/acp.js`));
const m = acp.methods;

function check(what, ok, seen) {
  if (!ok) throw new Error(`${what}: ${JSON.stringify(seen)}`);
  console.log(`ok ${what}`);
}

async function until(what, ok) {
  while (!ok()) await new Promise((r) => setTimeout(r, 20));
  console.log(`ok ${what}`);
}

// An editor with a process of its own for the agent.
class Editor {
  updates = [];
  asked = [];
  answer = async (params) => ({ outcome: { outcome: "selected", optionId: params.options[0].optionId } });

  constructor() {
    this.process = spawn(program, ["--workspace", workspace, "acp"], { stdio: ["pipe", "pipe", "inherit"] });
    const stream = acp.ndJsonStream(Writable.toWeb(this.process.stdin), Readable.toWeb(this.process.stdout));
    this.connection = acp
      .client({ name: "editor" })
      .onRequest(m.client.session.requestPermission, async ({ params, signal }) => {
        this.asked.push(params);
        return this.answer(params, signal);
      })
      .onNotification(m.client.session.update, ({ params }) => {
        this.updates.push(params.update);
      })
      .connect(stream);
    this.connection.closed.catch(() => {});
  }

  request(method, params) {
    return this.connection.agent.request(method, params);
  }

  async open() {
    const hello = await this.request(m.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    check("initialize", hello.protocolVersion === acp.PROTOCOL_VERSION && hello.agentCapabilities.loadSession, hello);
  }

  prompt(sessionId, ...blocks) {
    this.updates = [];
    const prompt = blocks.map((b) => (typeof b === "string" ? { type: "text", text: b } : b));
    return this.request(m.agent.session.prompt, { sessionId, prompt });
  }

  of(kind) {
    return this.updates.filter((u) => u.sessionUpdate === kind);
  }

  said() {
    return this.of("agent_message_chunk").map((u) => u.content.text).join("");
  }

  kill() {
    this.process.kill("SIGKILL");
  }
}

function daemon() {
  return JSON.parse(execFileSync(program, ["--workspace", workspace, "status", "--json"])).pid;
}

let editor = new Editor();
await editor.open();
const made = await editor.request(m.agent.session.new, { cwd: workspace, mcpServers: [] });
const sessionId = made.sessionId;
check("modes are profiles", made.modes.availableModes.map((x) => x.id).join() === "default,read-only,ask,auto,plan", made.modes);
await until("commands, own ones too", () =>
  editor.of("available_commands_update").some((u) => ["compact", "review"].every((n) => u.availableCommands.some((c) => c.name === n))));

let end = await editor.prompt(sessionId, "hello");
check("a prompt", end.stopReason === "end_turn" && editor.said() === "Hello, and welcome.", [end, editor.said()]);
check("it streams", editor.of("agent_message_chunk").length > 1, editor.updates);
check("it thinks aloud", editor.of("agent_thought_chunk").map((u) => u.content.text).join("") === "A greeting.", editor.updates);

end = await editor.prompt(sessionId, "see ", { type: "resource_link", name: "a.txt", uri: `file://${workspace}/a.txt` }, {
  type: "resource", resource: { uri: `file://${workspace}/b.txt`, text: "quoted text" } }, {
  type: "image", mimeType: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" });
check("resources and an image", end.stopReason === "end_turn", end);

end = await editor.prompt(sessionId, "edit the file");
const edit = editor.of("tool_call").find((u) => u.kind === "edit");
check("a tool call with its file", edit.locations[0].path === `${workspace}/a.txt` && edit.title.includes("a.txt"), edit);
const diff = editor.of("tool_call_update").flatMap((u) => u.content ?? []).find((c) => c.type === "diff");
check("a diff", diff.oldText === "one\n" && diff.newText === "two\n" && diff.path === `${workspace}/a.txt`, diff);
check("completed", editor.of("tool_call_update").at(-1).status === "completed", editor.updates);

await editor.request(m.agent.session.setMode, { sessionId, modeId: "ask" });
end = await editor.prompt(sessionId, "run it");
check("a permission", editor.asked.length === 1 && editor.asked[0].options.some((o) => o.kind === "reject_once"), editor.asked);
check("the answer counts", end.stopReason === "end_turn" && readFileSync(`${workspace}/ran`, "utf8") === "x\n", end);
const runs = editor.of("tool_call").filter((u) => u.kind === "execute");
check("one card, however often it was called", runs.length === 1 && editor.asked[0].toolCall.toolCallId === runs[0].toolCallId, editor.updates);
check("what it printed", JSON.stringify(editor.of("tool_call_update")).includes("printed"), editor.updates);

let withdrawn = false;
editor.answer = (params, signal) => new Promise((resolve) => {
  signal?.addEventListener("abort", () => { withdrawn = true; resolve({ outcome: { outcome: "cancelled" } }); });
  const token = JSON.parse(execFileSync(program, ["--workspace", workspace, "permissions", "ls", "--json"])).permissions[0].token;
  execFileSync(program, ["--workspace", workspace, "permissions", "deny", token]);
});
end = await editor.prompt(sessionId, "run it again");
check("an answer from elsewhere wins", end.stopReason === "end_turn", end);
await until("the question is withdrawn", () => withdrawn);
check("and is shown", JSON.stringify(editor.updates).includes("Denied by"), editor.updates);

const running = editor.prompt(sessionId, "take long");
await until("an answer begins", () => editor.said() !== "");
const second = await editor.request(m.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "me too" }] }).catch((e) => e);
check("a second prompt is refused", /already working on a prompt/.test(second.message), String(second));
await editor.connection.agent.notify(m.agent.session.cancel, { sessionId });
end = await running;
check("cancel", end.stopReason === "cancelled", end);

editor.updates = [];
const cut = editor.prompt(sessionId, "survive");
await until("it streams before the kill", () => editor.said() !== "");
process.kill(daemon(), "SIGKILL");
end = await cut;
check("a prompt survives the daemon", end.stopReason === "end_turn" && editor.said().endsWith("I survived it all, every word."), editor.said());

let refused = null;
const lost = editor.prompt(sessionId, "survive twice").catch((e) => {
  refused = e;
});
await until("it streams before the editor's agent is killed", () => {
  if (refused) throw refused;
  return editor.said() !== "";
});
editor.kill();
await lost;
editor = new Editor();
await editor.open();
const list = await editor.request(m.agent.session.list, {});
check("the list", list.sessions.length === 1 && list.sessions[0].sessionId === sessionId && list.sessions[0].title === "hello", list);
await editor.request(m.agent.session.load, { sessionId, cwd: workspace, mcpServers: [] });
await until("the rest of the answer", () => editor.said().endsWith("I survived it all, every word."));
const users = editor.of("user_message_chunk").map((u) => u.content.text ?? "file");
for (const text of ["hello", "edit the file", "run it", "run it again", "take long", "survive", "survive twice"]) {
  check(`once in the replay: ${text}`, users.filter((u) => u === text).length === 1, users);
}
check("the file of the prompt", users.includes("file"), users);

end = await editor.prompt(sessionId, "/review this");
check("an own command", end.stopReason === "end_turn", end);
const none = await editor.prompt(sessionId, "/nothing").catch((e) => e);
check("no such command", /no command \/nothing/.test(none.message), String(none));

editor.answer = async () => ({ outcome: { outcome: "cancelled" } });
const left = editor.prompt(sessionId, "run it once more");
await until("a question that is left open", () => editor.asked.length === 1);
await editor.connection.agent.notify(m.agent.session.cancel, { sessionId });
end = await left;
check("cancel while it asks", end.stopReason === "cancelled", end);
editor.answer = async () => ({ outcome: { outcome: "selected", optionId: "deny" } });
await editor.prompt(sessionId, "anything else?");
await until("it is asked again with the next prompt", () => editor.asked.length === 2);
console.log("done");
editor.process.stdin.end();
await new Promise((r) => editor.process.on("exit", r));
