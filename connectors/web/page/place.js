// Which files the page edits, where the API has them, and what an edit of each does.
import { agentPath } from './api.js';
import { agentOf } from './store.js';
import { titleOf } from './state.js';

// OF_AGENT are the files of an agent's folder that users edit.
export const OF_AGENT = ['descriptor.json', 'state.json', 'SYSTEM.md', 'history.jsonl'];

// OF_WORKSPACE are those that every workspace can have.
export const OF_WORKSPACE = ['settings.yaml', 'SOUL.md', 'USER.md', 'AGENTS.md'];

// EFFECTS say what happens after a file was published, by its name.
const EFFECTS = {
  'descriptor.json': 'It takes effect with the agent’s next turn.',
  'state.json': 'It takes effect with the agent’s next turn. A change of permissions is recorded in the history.',
  'SYSTEM.md': 'It takes effect with the agent’s next turn, in a new system prompt.',
  'history.jsonl': 'It takes effect with the next model call, even during a turn.',
  'settings.yaml': 'It takes effect at once. Some sections need a restart; publishing says which.',
  'SOUL.md': 'Every agent reads it in its system prompt, from its next turn on.',
  'USER.md': 'Every agent reads it in its system prompt, from its next turn on.',
  'AGENTS.md': 'Every agent reads it in its system prompt, from its next turn on.',
  'TASK.md': 'It takes effect as soon as it is published.',
};

// OWNERS say who writes which members of a file that you and daycare share.
const OWNERS = {
  'state.json': [
    ['permissions, provider', 'yours'],
    ['queue, budget', 'yours'],
    ['createdAt, ended', 'daycare’s'],
    ['session, tokens, stats', 'recomputed'],
  ],
  'descriptor.json': [
    ['name, systemPrompt, tools', 'yours'],
    ['id, type, createdAt', 'daycare’s'],
  ],
};

// place is the file that the path of a URL names: {path, name, title, agent, url, effect, owners}; null if there is none
// yet, as the agents are not read.
export function place(parts) {
  const name = parts.at(-1);
  if (parts.length === 2 && OF_AGENT.includes(name)) {
    const agent = agentOf(parts[0]);
    if (!agent) return null;
    return about({ name, agent, title: titleOf(agent), path: agentPath(agent.id, `/files/${name}`), url: urlOf(agent, name) });
  }
  const path = parts.join('/');
  return about({
    name,
    title: path === name ? 'workspace' : path.slice(0, -name.length - 1),
    path: `/v1/files/${encodeURIComponent(path)}`,
    url: `/files/${parts.map(encodeURIComponent).join('/')}`,
  });
}

function about(file) {
  return { ...file, effect: EFFECTS[file.name] ?? 'It takes effect as soon as it is published.', owners: OWNERS[file.name] ?? [] };
}

// urlOf is the address of a file of an agent in the page.
export function urlOf(agent, name) {
  return `/files/${encodeURIComponent(agent.handle.replace(/\/$/, ''))}/${name}`;
}

// isHistory reports whether a file is shown as records instead of text.
export function isHistory(file) {
  return file.name === 'history.jsonl';
}
