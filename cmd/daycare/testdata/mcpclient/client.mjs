// The official TypeScript client against daycare: node client.mjs stdio WORKSPACE, or
// node client.mjs http URL TOKEN. It does what comes on standard input, a JSON array a line:
// a tool with its arguments, "read" with a URI, or "resources"; and prints a line for each answer.
// NODE_MODULES is the folder with @modelcontextprotocol/sdk.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const sdk = pathToFileURL(process.env.NODE_MODULES + "/@modelcontextprotocol/sdk/dist/esm/").href;
const { Client } = await import(sdk + "client/index.js");
const { StdioClientTransport } = await import(sdk + "client/stdio.js");
const { StreamableHTTPClientTransport } = await import(sdk + "client/streamableHttp.js");

const [kind, where, token] = process.argv.slice(2);
const transport = kind === "stdio"
  ? new StdioClientTransport({ command: "daycare", args: ["--workspace", where, "mcp", "serve"], env: process.env })
  : new StreamableHTTPClientTransport(new URL(where), { requestInit: { headers: { Authorization: "Bearer " + token } } });
const say = (o) => console.log(JSON.stringify(o));

const client = new Client({ name: "typescript", version: "1" });
try {
  await client.connect(transport);
} catch (e) {
  say({ error: String(e) });
  process.exit(1);
}
say({ tools: (await client.listTools()).tools.map((t) => t.name).sort() });

for await (const line of createInterface({ input: process.stdin })) {
  const [what, args, cancelAfter] = JSON.parse(line);
  const stop = new AbortController();
  try {
    if (what === "resources") {
      say({ uris: (await client.listResources()).resources.map((r) => r.uri) });
    } else if (what === "read") {
      say({ text: (await client.readResource({ uri: args })).contents[0].text });
    } else {
      const onprogress = (p) => {
        say({ progress: p.message });
        if (p.message === cancelAfter) stop.abort("enough");
      };
      const r = await client.callTool({ name: what, arguments: args }, undefined, { onprogress, signal: stop.signal });
      say({ error: r.isError ? r.content[0].text : undefined, text: r.content[0].text, out: r.structuredContent });
    }
  } catch (e) {
    say({ error: String(e) });
  }
}
await client.close();
