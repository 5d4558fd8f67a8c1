// The page's connection: one stream of events of all agents for all tabs, and what depends on it. The tab
// that holds the lock reads the stream and passes it to the others; HTTP/1.1 gives a browser six connections.
import { Stream } from './events.js';
import { setReachable } from './api.js';

// TYPES are the events that the pages live by: all but streamed text and the output of running tools.
const TYPES = [
  'agent.created',
  'agent.woke',
  'agent.slept',
  'agent.reset',
  'agent.compacted',
  'agent.ended',
  'item.queued',
  'item.taken',
  'item.done',
  'item.dropped',
  'turn.started',
  'turn.finished',
  'tool.started',
  'tool.finished',
  'sub_agent_start',
  'sub_agent_end',
  'retry',
  'permission.requested',
  'permission.decided',
  'permission.granted',
  'permission.revoked',
  'outbox.sent',
  'outbox.failed',
  'cron.fired',
  'cron.skipped',
  'config.reloaded',
  'config.invalid',
  'file.edited',
  'file.invalid',
  'budget.reached',
  'sandbox.refused',
];

// FIRST_MS is how long the page waits for its connection before it reads anything, in milliseconds.
const FIRST_MS = 350;

const listeners = { event: new Set(), state: new Set(), again: new Set() };
let state = { live: false, since: Date.now(), connecting: true };
let stream = null;
let last = '';
let boot = '';
let channel = null;
let begun = false; // something was read
let known; // called when it is known whether there is a connection

// on calls f for 'event' (each event), 'state' (connected or not) or 'again' (events were lost, or the daemon
// was restarted: read everything in view again). It returns what ends that.
export function on(what, f) {
  listeners[what].add(f);
  return () => listeners[what].delete(f);
}

// connection is {live, since, retryAt}, times in ms; connecting until the first answer.
export function connection() {
  return state;
}

// leads reports whether this tab reads the stream: what must happen once in a browser (a notification)
// happens there.
export function leads() {
  return stream !== null;
}

// connect begins, and returns a promise that is kept when the connection is there or cannot be made, soon in any
// case: what is read after it misses no event, so that nothing has to be read twice. refused is called when the
// server ends the session.
export function connect(refused) {
  const first = new Promise((done) => {
    known = done;
    setTimeout(done, FIRST_MS);
  });
  channel = new BroadcastChannel('daycare');
  channel.onmessage = ({ data }) => hear(data, refused);
  channel.postMessage({ hello: true });
  const lead = () => new Promise(() => startStream(refused));
  if (navigator.locks) navigator.locks.request('daycare-events', lead);
  else lead();
  addEventListener('online', retry);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) retry();
  });
  return first.then(() => {
    begun = true;
  });
}

// retry connects at once if the connection is lost.
export function retry() {
  if (state.live) return;
  if (stream) stream.retry();
  else channel?.postMessage({ retry: true });
}

function startStream(refused) {
  stream = new Stream(`/v1/events?types=${TYPES.join(',')}`, {
    event: (e) => share({ event: e }),
    gap: () => share({ again: true }),
    state: (s) => share({ state: s }),
    refused: (status) => {
      share({ refused: status });
      refused(status);
    },
  });
  stream.start(last);
}

function share(message) {
  channel.postMessage(message);
  tell(message);
}

function hear(message, refused) {
  if (message.hello && stream) channel.postMessage({ state });
  else if (message.retry) stream?.retry();
  else if (message.refused) refused(message.refused);
  else if (!stream) tell(message);
}

function tell(message) {
  if (message.event) tellEvent(message.event);
  if (message.again) emit('again');
  if (message.state) tellState(message.state);
}

// tellEvent passes an event on. The first part of its id changes when the daemon was restarted.
function tellEvent(e) {
  if (e.id) {
    last = e.id;
    const from = e.id.slice(0, e.id.lastIndexOf('.'));
    const restarted = boot !== '' && from !== boot;
    boot = from;
    if (restarted) emit('again');
  }
  emit('event', e);
}

// tellState passes the state of the connection on. What was read before there was one is read again: events may
// have come in between.
function tellState(s) {
  const begins = s.live && !state.live;
  state = s;
  setReachable(s.live);
  emit('state', s);
  known();
  if (begins && begun) emit('again');
}

function emit(what, value) {
  for (const f of listeners[what]) f(value);
}
