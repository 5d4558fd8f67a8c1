// What is typed is safe: drafts by agent in the browser's storage, and messages that are sent until there is an
// answer, always with the same key, so that they arrive once.
import { post, agentPath, dedupeKey } from './api.js';
import { connection, on } from './live.js';

const PREFIX = 'daycare.draft.';
const underway = new Map(); // promises of the messages that this page is sending, by agent
const unsent = new Map(); // files that go with the next message, by agent

// A draft is {text, sending?: {dedupe, queue, files}}; sending is set from the first try to the answer, files is
// how many it has.
export function draftOf(id) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + id)) ?? { text: '' };
  } catch {
    return { text: '' };
  }
}

// keep stores what is typed.
export function keep(id, text) {
  store(id, { text });
}

function store(id, draft) {
  try {
    if (draft.text || draft.sending) localStorage.setItem(PREFIX + id, JSON.stringify(draft));
    else localStorage.removeItem(PREFIX + id);
  } catch {
    /* the browser keeps nothing: the field still has it */
  }
}

// filesOf are the files that go with the next message to an agent: {list: [{name, bytes, data}], reading}. They are kept
// until the page is loaded anew; reading is done when every file that was given is read.
export function filesOf(id) {
  if (!unsent.has(id)) unsent.set(id, { list: [], reading: Promise.resolve() });
  return unsent.get(id);
}

// send posts a message and returns the receipt. While the daemon does not answer it waits and sends the same
// again. Once accepted, the draft is gone; refused, it is a draft again, and the error is thrown.
export function send(id, message) {
  if (underway.has(id)) return Promise.reject(new Error('a message to this agent is being sent'));
  const sent = settle(id, message).finally(() => underway.delete(id));
  underway.set(id, sent);
  return sent;
}

// sending is the promise of the message to an agent that this page is sending, undefined if there is none.
export function sending(id) {
  return underway.get(id);
}

async function settle(id, { text, queue, files = [], dedupe = dedupeKey() }) {
  store(id, { text, sending: { dedupe, queue, files: files.length } });
  try {
    const receipt = await persist(id, { text, dedupe, ...(queue ? { queue } : {}), ...(files.length ? { files } : {}) });
    store(id, { text: '' });
    return receipt;
  } catch (err) {
    store(id, { text });
    throw err;
  }
}

// persist posts until there is an answer that says yes or no.
async function persist(id, body) {
  for (let wait = 1000; ; wait = Math.min(wait * 2, 15_000)) {
    try {
      return await post(agentPath(id, '/messages'), body);
    } catch (err) {
      if (err.status !== 0 && err.status < 502 && err.code !== 'shutting_down' && err.code !== 'not_running') throw err;
    }
    await again(wait);
  }
}

// again waits for a pause while connected, else for the connection.
function again(ms) {
  return new Promise((done) => {
    if (connection().live) {
      setTimeout(done, ms);
      return;
    }
    const off = on('state', (s) => {
      if (!s.live) return;
      off();
      done();
    });
  });
}

// resume sends what an earlier page was sending when it was closed or reloaded. Files are not kept: a message
// that had some is a draft again.
export function resume() {
  for (const key of Object.keys(localStorage)) {
    if (!key.startsWith(PREFIX)) continue;
    const id = key.slice(PREFIX.length);
    const { text, sending: begun } = draftOf(id);
    if (begun && !begun.files && text) send(id, { text, queue: begun.queue, dedupe: begun.dedupe }).catch(() => {});
    else if (begun) keep(id, text);
  }
}
