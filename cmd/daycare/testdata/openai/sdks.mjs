// What unmodified SDKs do with an agent. The last line is the turns that counted tokens.
import assert from "node:assert/strict";
import OpenAI, { AuthenticationError, NotFoundError } from "openai";
import { generateText, streamText } from "ai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";

const baseURL = process.env.BASE;
const apiKey = process.env.TOKEN;
const client = new OpenAI({ baseURL, apiKey });
const turns = {};
const model = "openai";

function chatUsage(u) {
  assert.equal(u.prompt_tokens, 130);
  assert.equal(u.completion_tokens, 20);
  assert.equal(u.total_tokens, 150);
  assert.equal(u.prompt_tokens_details.cached_tokens, 30);
  assert.equal(u.completion_tokens_details.reasoning_tokens, 7);
}

// openai: models
const models = [];
for await (const m of client.models.list()) models.push(m.id);
assert.deepEqual(models, [model]);
assert.equal((await client.models.retrieve(model)).id, model);

// openai: chat completions
const whole = await client.chat.completions.create({ model, messages: [{ role: "user", content: "alpha" }] });
assert.equal(whole.choices[0].message.content, "heard alpha");
assert.equal(whole.choices[0].finish_reason, "stop");
chatUsage(whole.usage);
turns.whole = whole.id;

const stream = client.chat.completions.stream({
  model, stream_options: { include_usage: true },
  messages: [
    { role: "user", content: "alpha" }, { role: "assistant", content: "heard alpha" }, { role: "user", content: "bravo" },
  ],
  tools: [{ type: "function", function: { name: "now", parameters: { type: "object", properties: {} } } }],
});
let pieces = 0;
stream.on("content", () => pieces++);
const final = await stream.finalChatCompletion();
assert.equal(final.choices[0].message.content, "heard bravo"); // the earlier messages were not repeated
assert.ok(pieces >= 2, `${pieces} pieces`);
chatUsage(final.usage);
turns.stream = final.id;

// openai: the same key is the same answer
const key = { headers: { "Idempotency-Key": "once" } };
const once = await client.chat.completions.create({ model, messages: [{ role: "user", content: "charlie" }] }, key);
const again = await client.chat.completions.create({ model, messages: [{ role: "user", content: "charlie" }] }, key);
assert.equal(again.id, once.id);
assert.deepEqual(again.usage, once.usage);
turns.once = once.id;

// openai: pictures
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const seen = await client.chat.completions.create({
  model, messages: [{ role: "user", content: [
    { type: "text", text: "a picture" }, { type: "image_url", image_url: { url: "data:image/png;base64," + png } },
  ] }],
});
assert.equal(seen.choices[0].message.content, "seen");

// openai: errors
await assert.rejects(client.chat.completions.create({ model: "opnai", messages: [{ role: "user", content: "x" }] }),
  (e) => e instanceof NotFoundError && e.code === "model_not_found" && /did you mean "openai"/.test(e.message));
await assert.rejects(new OpenAI({ baseURL, apiKey: "wrong" }).models.list(),
  (e) => e instanceof AuthenticationError || e.status === 401);

// openai: responses
const response = await client.responses.create({ model, input: "delta" });
assert.equal(response.output_text, "heard delta");
assert.equal(response.status, "completed");
assert.equal(response.usage.input_tokens, 130);
assert.equal(response.usage.output_tokens_details.reasoning_tokens, 7);
turns.response = response.id;

const events = client.responses.stream({ model, input: "echo", previous_response_id: response.id });
let text = "";
events.on("response.output_text.delta", (e) => { text += e.delta; });
const done = await events.finalResponse();
assert.equal(text, "heard echo");
assert.equal(done.output_text, "heard echo");
assert.equal(done.usage.total_tokens, 150);
turns.events = done.id;

// ai, with @ai-sdk/openai-compatible
const daycare = createOpenAICompatible({ name: "daycare", baseURL, apiKey, includeUsage: true });
const generated = await generateText({ model: daycare(model), prompt: "foxtrot" });
assert.equal(generated.text, "heard foxtrot");
assert.equal(generated.finishReason, "stop");
assert.equal(generated.usage.inputTokens, 130);
assert.equal(generated.usage.outputTokens, 20);
turns.generated = "ai";

const streamed = streamText({ model: daycare(model), messages: [{ role: "user", content: "golf" }] });
text = "";
for await (const piece of streamed.textStream) text += piece;
assert.equal(text, "heard golf");
assert.equal(await streamed.finishReason, "stop");
assert.equal((await streamed.usage).totalTokens, 150);
turns.streamed = "ai";

console.log(JSON.stringify(Object.fromEntries(Object.entries(turns).map(([k, v]) => [k, { item: v }]))));
