// What the whole page knows: all agents, the requests that wait, the status. It is the newest snapshot of
// the API with what events added since; nothing of it is stored.
import { get, agentPath } from './api.js';
import { on } from './live.js';

// READ_MS is how often agents are read again at most while events say that they changed, in milliseconds;
// TELL_MS how often listeners are called when agents change: 4 times a second.
const READ_MS = 1000;
const TELL_MS = 250;

const agents = new Map(); // by id
const listeners = { agents: new Set(), asks: new Set(), status: new Set() };
let sorted = null;
let asks = [];
let askBy = new Map(); // the oldest by agent
let status = null;
let loaded = false;

// subscribe calls f when 'agents', 'asks' or 'status' changed; it returns what ends that.
export function subscribe(what, f) {
  listeners[what].add(f);
  return () => listeners[what].delete(f);
}

// all agents in the order of their handles; ready is false before the first answer.
export function allAgents() {
  sorted ??= [...agents.values()].sort((a, b) => compareHandles(a.handle, b.handle));
  return sorted;
}

export function ready() {
  return loaded;
}

// agentOf finds an agent by id or handle, with or without the slash at its end.
export function agentOf(ref) {
  if (agents.has(ref)) return agents.get(ref);
  const handle = ref.replace(/\/$/, '');
  return allAgents().find((a) => a.handle.replace(/\/$/, '') === handle);
}

// read is an agent by id, read if it is so new that it is not known yet; undefined if there is none.
export async function read(id) {
  if (!agents.has(id)) await readOne(id).catch(() => {});
  return agents.get(id);
}

// childrenOf lists the agents that work for an agent, by handle.
export function childrenOf(id) {
  return allAgents().filter((a) => a.parentAgentId === id);
}

// openAsks lists the requests that wait, oldest first; askOf is the oldest one of an agent.
export function openAsks() {
  return asks;
}

export function askOf(id) {
  return askBy.get(id);
}

export function daemonStatus() {
  return status;
}

// load reads everything; begin does it once and keeps it up to date by events.
export async function load() {
  const open = loadAsks();
  const list = await get('/v1/agents');
  agents.clear();
  for (const a of list.agents) agents.set(a.id, a);
  loaded = true;
  sorted = null;
  emit('agents'); // at once: this is what the first paint with agents waits for
  await open;
  loadStatus();
}

export function begin() {
  on('event', take);
  on('again', () => load().catch(() => {}));
  return load();
}

export async function loadStatus() {
  status = await get('/v1/status').catch(() => status);
  emit('status');
}

async function loadAsks() {
  const open = await get('/v1/permissions').catch(() => null);
  if (open) setAsks(open.permissions);
}

function setAsks(list) {
  asks = list.toSorted((a, b) => a.askedAt.localeCompare(b.askedAt));
  askBy = new Map(asks.toReversed().map((a) => [a.agentId, a]));
  emit('asks');
  changedAgents();
}

// QUICK is what an event alone says about an agent, until the agent is read again.
const QUICK = {
  'turn.started': () => ({ state: 'thinking', detail: '', failed: '' }),
  'tool.started': (e) => ({ state: 'tool', detail: callLine(e) }),
  'tool.finished': () => ({ state: 'thinking', detail: '' }),
  retry: (e) => ({ state: 'retrying', detail: `retry ${e.n}/${e.of} in ${Math.ceil(e.inMs / 1000)}s: ${e.reason}` }),
  'turn.finished': (e) => (e.text ? { said: e.text.slice(0, 400) } : {}),
};

// AGAIN are the events after which an agent is read again.
const AGAIN = /^(agent\.|item\.|turn\.|permission\.|budget\.|outbox\.failed|file\.)/;

function take(e) {
  const agent = agents.get(e.agent);
  if (agent && QUICK[e.type]) {
    Object.assign(agent, QUICK[e.type](e), { lastAt: e.at });
    if (e.type === 'turn.started') agent.since = e.at;
    changedAgents();
  }
  if (e.agent && AGAIN.test(e.type)) readAgain(e.agent);
  if (e.type.startsWith('permission.') || e.type === 'budget.reached') asksAgain();
  if (/^(config|file)\./.test(e.type)) statusAgain();
}

// A history that was changed by hand can have a problem, and so an event, on each line: many are one reading.
const asksAgain = calm(loadAsks);
const statusAgain = calm(loadStatus);

// calm returns a function that calls read soon, once for many calls, and not while it still reads.
function calm(read) {
  let waiting = false;
  let again = false;
  const run = async () => {
    again = false;
    await read();
    waiting = again;
    if (again) setTimeout(run, READ_MS);
  };
  return () => {
    again = true;
    if (!waiting) setTimeout(run, 0);
    waiting = true;
  };
}

// callLine is a call as one line: the name, and the argument that says most.
export function callLine(e) {
  const subject = subjectOf(e.arguments);
  return subject ? `${e.name} ${subject}` : e.name;
}

// MAIN_ARGUMENTS are what a call is about, in the words of common tools; the terminal has the same list.
const MAIN_ARGUMENTS = ['command', 'path', 'file', 'file_path', 'pattern', 'query', 'url', 'permission', 'name', 'task', 'prompt', 'text'];

export function subjectOf(args) {
  if (typeof args === 'string') return args;
  if (args === null || typeof args !== 'object') return '';
  for (const key of MAIN_ARGUMENTS) {
    if (typeof args[key] === 'string' && args[key] !== '') return args[key];
  }
  const texts = Object.values(args).filter((v) => typeof v === 'string');
  return texts.length === 1 ? texts[0].trim() : '';
}

const stale = new Set();
let reading = null;

// MANY is from how many agents on the whole list is read instead of them, unless it has far more.
const MANY = 4;

// readAgain reads an agent and those it works for again, soon: few one by one, many as the whole list.
function readAgain(id) {
  for (let at = id; at && !stale.has(at); at = agents.get(at)?.parentAgentId) stale.add(at);
  reading ??= setTimeout(
    async () => {
      const ids = [...stale];
      stale.clear();
      await (ids.length > Math.max(MANY, agents.size / 16) ? readAll() : Promise.all(ids.map(readOne))).catch(() => {});
      reading = null;
      if (stale.size) readAgain([...stale][0]);
    },
    stale.size > 1 || agents.size > 50 ? READ_MS : TELL_MS,
  );
}

async function readOne(id) {
  try {
    put(await get(agentPath(id)));
  } catch (err) {
    if (err.status === 404) agents.delete(id);
  }
  changedAgents();
}

async function readAll() {
  const list = await get('/v1/agents');
  const ids = new Set(list.agents.map((a) => a.id));
  for (const id of agents.keys()) if (!ids.has(id)) agents.delete(id);
  for (const a of list.agents) put(a);
  changedAgents();
}

// put takes an agent as it is now, and keeps what only events say about it.
function put(agent) {
  agents.set(agent.id, { ...agent, since: agents.get(agent.id)?.since });
}

let telling = null;

function changedAgents() {
  sorted = null;
  telling ??= setTimeout(() => {
    telling = null;
    emit('agents');
  }, TELL_MS);
}

function emit(what) {
  for (const f of listeners[what]) f();
}

// compareHandles orders 2/ before 10/, and children behind their parent.
export function compareHandles(a, b) {
  const as = a.split('/').filter(Boolean).map(Number);
  const bs = b.split('/').filter(Boolean).map(Number);
  for (let i = 0; i < Math.min(as.length, bs.length); i++) {
    if (as[i] !== bs[i]) return as[i] - bs[i];
  }
  return as.length - bs.length;
}
