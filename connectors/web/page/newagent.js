// Making an agent: the dialog, and the text field of a workspace that has none yet.
import { h, svg } from './dom.js';
import { post, agentPath, dedupeKey } from './api.js';
import { ask, failed } from './dialog.js';
import { daemonStatus, subscribe } from './store.js';

// newAgent asks for a name and makes an agent; it returns the agent, or null.
export async function newAgent() {
  const name = await ask({
    title: 'New agent',
    body: 'It gets its own conversation, and works in the workspace. It waits for your first message.',
    yes: 'Create',
    field: { label: 'Name, or empty' },
  });
  if (name === null) return null;
  return create(name);
}

async function create(name) {
  try {
    return await post('/v1/agents', { type: 'user', ...(name ? { name } : {}) });
  } catch (err) {
    failed(err);
    return null;
  }
}

// firstMessage is what a workspace without agents shows: the first message makes one. made gets the agent.
export function firstMessage(made) {
  const text = h('textarea', { rows: 2, placeholder: 'Write to your agent', 'aria-label': 'Message to your agent', autofocus: true });
  const dedupe = dedupeKey();
  let agent = null; // made once, even if the message has to be sent again
  const send = async () => {
    if (!text.value.trim()) return;
    text.readOnly = true;
    try {
      agent ??= await create(nameFrom(text.value));
      if (!agent) return;
      await post(agentPath(agent.id, '/messages'), { text: text.value, dedupe });
      made(agent);
    } catch (err) {
      failed(err);
    } finally {
      text.readOnly = false;
    }
  };
  text.addEventListener('keydown', (e) => {
    if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    send();
  });
  const where = h('span', 'the workspace');
  const off = subscribe('status', () => {
    where.replaceChildren(h('code', daemonStatus()?.workspace ?? ''));
    off();
  });
  return h(
    'div.empty',
    logo(),
    h('h1', 'No agents yet'),
    h(
      'p',
      'Write below: your first message creates an agent. It works in ',
      where,
      ', continues when you close this page, and asks you before doing anything it has no permission for.',
    ),
    h(
      'div.field',
      text,
      h(
        'div.bar',
        h('span.help', h('kbd', 'Enter'), ' sends · ', h('kbd', 'Shift Enter'), ' new line'),
        h('span.grow'),
        h('button.btn.main', { type: 'button', onclick: send }, 'Send'),
      ),
    ),
  );
}

// nameFrom makes a name of the first words of a message.
function nameFrom(text) {
  const words = text
    .replace(/[^\p{L}\p{N} '-]/gu, ' ')
    .trim()
    .split(/\s+/)
    .filter((w) => !/^(please|can|could|you|the|a)$/i.test(w));
  return words.slice(0, 4).join(' ').slice(0, 40);
}

function logo() {
  return svg('svg', { class: 'logo', 'aria-hidden': 'true' }, svg('use', { href: '#logo' }));
}
