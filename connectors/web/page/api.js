// Calls of the API. They carry the session's cookie, and all that change something the header X-Daycare,
// which no form of another page can send.
import { read } from './json.js';

// An ApiError is an answer of the API that is not a success: code, message and hint as docs/api.md has
// them; body is the whole answer, with conflict, findings, decided and the like. status 0: no answer at all.
export class ApiError extends Error {
  constructor(status, error, body) {
    super(error.message ?? 'daycare does not answer');
    this.status = status;
    this.code = error.code ?? 'unreachable';
    this.hint = error.hint ?? '';
    this.error = error;
    this.body = body;
  }
}

// TIMEOUT_MS is how long one call may take; the slowest (doctor, tests of providers) stay below it.
const TIMEOUT_MS = 60_000;

let reachable = true; // set by the stream of events
let signedOut = () => {};

// setReachable tells whether the daemon answers; while it does not, nothing that changes anything is sent.
export function setReachable(yes) {
  reachable = yes;
}

// onSignedOut sets what happens when the session is missing or over.
export function onSignedOut(f) {
  signedOut = f;
}

export function get(path, options) {
  return call('GET', path, options);
}

export function post(path, body, options) {
  return call('POST', path, { ...options, body });
}

export function put(path, body, options) {
  return call('PUT', path, { ...options, body });
}

export function del(path, options) {
  return call('DELETE', path, options);
}

// readFile returns a file of the API as text with its hash: {text, etag}. What would be other bytes when it is written
// again is an ApiError.
export async function readFile(path, options) {
  const answer = await send('GET', path, options);
  const bytes = await answer.arrayBuffer().catch(() => Promise.reject(new ApiError(0, {})));
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { text, etag: answer.headers.get('ETag') ?? '' };
  } catch {
    throw new ApiError(415, { code: 'not_text', message: 'it is not UTF-8 text', hint: 'Change it in an editor that knows its encoding.' });
  }
}

// writeFile replaces a file if its hash is still etag, and returns its new hash. Else it throws an ApiError:
// 409 with conflict, 422 with findings.
export async function writeFile(path, text, etag) {
  const headers = { 'If-Match': etag, 'Content-Type': 'application/octet-stream' };
  const answer = await send('PUT', path, { raw: text, headers });
  return answer.headers.get('ETag') ?? '';
}

async function call(method, path, options) {
  const answer = await send(method, path, options);
  if (answer.status === 204) return null;
  const type = answer.headers.get('Content-Type') ?? '';
  const text = await answer.text();
  return type.includes('json') ? read(text) : text;
}

async function send(method, path, { body, raw, headers = {}, signal } = {}) {
  if (method !== 'GET') {
    if (!reachable) throw new ApiError(0, { message: 'daycare does not answer; nothing was sent' });
    headers = { ...headers, 'X-Daycare': '1' };
  }
  if (body !== undefined) headers = { ...headers, 'Content-Type': 'application/json' };
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      cache: 'no-store',
      credentials: 'same-origin',
      redirect: 'error',
      body: body === undefined ? raw : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
  } catch (err) {
    if (signal?.aborted) throw err;
    throw new ApiError(0, {});
  }
  if (answer.ok) return answer;
  throw await failure(answer);
}

// failure reads the error of an answer. A session that is over signs the page out.
async function failure(answer) {
  const body = await answer.json().catch(() => ({}));
  const error = body.error ?? { code: 'http', message: `${answer.status} ${answer.statusText}` };
  if (answer.status === 401) signedOut(error);
  return new ApiError(answer.status, error, body);
}

// agentPath is the path of an agent in the API, by id or handle.
export function agentPath(ref, rest = '') {
  return `/v1/agents/${encodeURIComponent(ref.replace(/\/$/, ''))}${rest}`;
}

// dedupeKey makes the key under which a message is accepted once, however often it is sent.
export function dedupeKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${[...bytes].map((b) => b.toString(16).padStart(2, '0')).join('')}`;
}
