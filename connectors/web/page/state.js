// The state of an agent in one word, one sign and one colour; the table is in docs/web.md.
import { plain } from './dom.js';
import { askOf, childrenOf } from './store.js';
import { hour } from './format.js';

const WORK = new Set(['thinking', 'tool', 'waiting-agent']);

// GROUPS are the sections of Home, most urgent first.
export const GROUPS = [
  { key: 'needs', title: 'Needs you' },
  { key: 'working', title: 'Working' },
  { key: 'new', title: 'New for you' },
  { key: 'idle', title: 'Idle' },
  { key: 'ended', title: 'Ended' },
];

const GROUP_OF = {
  ask: 'needs',
  error: 'needs',
  paused: 'needs',
  work: 'working',
  retry: 'working',
  queued: 'working',
  new: 'new',
  idle: 'idle',
  ended: 'ended',
};

// WORDS name each state for people who cannot see its sign.
export const WORDS = {
  ask: 'asks for approval',
  error: 'failed',
  paused: 'paused',
  work: 'working',
  retry: 'retrying',
  queued: 'has queued work',
  new: 'has a new answer',
  idle: 'idle',
  ended: 'ended',
};

// keyOf is the state of an agent as the page tells it apart: one of the keys of WORDS.
export function keyOf(agent) {
  if (agent.state === 'paused') return 'paused';
  if (agent.state === 'waiting-permission' || askOf(agent.id)) return 'ask';
  if (agent.state === 'error') return 'error';
  if (WORK.has(agent.state)) return 'work';
  if (agent.state === 'retrying') return 'retry';
  if (agent.state === 'queued') return 'queued';
  if (agent.state === 'ended') return 'ended';
  if (agent.failed) return 'error';
  return unread(agent) ? 'new' : 'idle';
}

export function groupOf(agent) {
  return GROUP_OF[keyOf(agent)];
}

// doing says what an agent does, or said last: {text, code}; code is shown in the monospace font.
export function doing(agent) {
  const ask = askOf(agent.id);
  const detail = plain(agent.detail ?? '');
  switch (keyOf(agent)) {
    case 'ask':
      return ask ? { text: 'asks: ', code: firstLine(ask.shown ?? ask.request) } : { text: 'asks for approval' };
    case 'paused':
      return { text: detail ? `paused: ${detail}` : 'paused' };
    case 'error':
      return agent.state === 'error' ? { text: detail ? `error: ${detail}` : 'error' } : { text: `failed: ${plain(agent.failed)}` };
    case 'retry':
      return { text: detail.startsWith('retry ') ? detail : `retrying: ${detail}` };
    case 'queued':
      return { text: detail || 'has queued work' };
    case 'work':
      break;
    default:
      return { text: plain(firstLine(agent.said ?? '').replace(/\*\*|`/g, '')) }; // without the marks of Markdown
  }
  if (agent.state === 'tool') return { text: '', code: detail };
  if (agent.state === 'waiting-agent') return { text: waitsFor(agent) };
  return { text: 'thinking' };
}

function waitsFor(agent) {
  const busy = childrenOf(agent.id)
    .filter((c) => c.state !== 'idle' && c.state !== 'ended')
    .map((c) => c.handle);
  return busy.length ? `waits for ${busy.join(', ')}` : 'waits for its agents';
}

export function firstLine(text) {
  const end = text.indexOf('\n');
  return end < 0 ? text : `${text.slice(0, end)} …`;
}

// nameOf is the name of an agent without the connector that every terminal agent has before it.
export function nameOf(agent) {
  return plain(agent.name.replace(/^terminal:/, '')) || 'unnamed';
}

// titleOf is handle and name, as people call an agent.
export function titleOf(agent) {
  return agent ? `${agent.handle} ${nameOf(agent)}` : 'a removed agent';
}

// urlOf is the address of an agent's page.
export function urlOf(agent, rest = '') {
  return `/agents/${encodeURIComponent(agent.handle.replace(/\/$/, ''))}${rest}`;
}

// depth is how many agents are above it.
export function depth(agent) {
  return Math.max(0, agent.handle.split('/').filter(Boolean).length - 1);
}

// What was read is a hint of this browser: an answer newer than the last visit is new.
const SEEN = 'daycare.seen';
let seen = null;

function readSeen() {
  try {
    seen = JSON.parse(localStorage.getItem(SEEN) ?? 'null');
  } catch {
    /* a hint that cannot be read is none */
  }
  seen ??= { since: new Date().toISOString(), agents: {} };
  return seen;
}

export function unread(agent) {
  const s = seen ?? readSeen();
  return Boolean(agent.lastAt) && agent.lastAt > (s.agents[agent.id] ?? s.since);
}

// markRead notes that everything an agent said was seen.
export function markRead(agent) {
  if (!agent.lastAt || !unread(agent)) return;
  readSeen();
  seen.agents[agent.id] = agent.lastAt;
  try {
    localStorage.setItem(SEEN, JSON.stringify(seen));
  } catch {
    /* the browser keeps nothing: everything stays new */
  }
}

// keepSeen stores the first visit, so that what came before it is not new.
export function keepSeen() {
  try {
    if (!localStorage.getItem(SEEN)) localStorage.setItem(SEEN, JSON.stringify(readSeen()));
  } catch {
    /* the same */
  }
}

// elapsed is since when an agent is at work, '' if that is not known.
export function elapsed(agent) {
  return agent.since ? hour(agent.since) : '';
}
