// What is done with an agent and its conversation. Fork, rewind and the like ask first, and say what will and
// what will not change.
import { h, icon } from '../dom.js';
import { post, agentPath } from '../api.js';
import { ask, failed, toast } from '../dialog.js';
import { go } from '../router.js';
import { urlOf } from '../state.js';

// stop cancels the turn. It asks in place while a tool runs, because the work of the tool would be lost.
export async function stop(agent) {
  if (
    agent.state === 'tool' &&
    !(await ask({
      title: `Stop ${agent.handle}?`,
      body: 'A tool is running. Its work is lost, and the agent is notified that you stopped it.',
      yes: 'Stop',
      danger: true,
    }))
  )
    return;
  try {
    const { stopped } = await post(agentPath(agent.id, '/stop'));
    toast(stopped ? 'Stopped' : 'It was not working');
  } catch (err) {
    failed(err);
  }
}

export async function fork(agent, at) {
  const name = await ask({
    title: at ? `Fork at #${at}` : 'Fork',
    yes: 'Fork',
    field: { label: 'Name, or empty' },
    body: [
      'A new agent continues from here, with the same permissions, model and budget.',
      'This agent stays as it is. Its children, schedules and undelivered replies stay with it.',
    ],
  });
  if (name === null) return;
  try {
    go(urlOf(await post(agentPath(agent.id, '/fork'), { ...(at ? { at } : {}), ...(name ? { name } : {}) })));
  } catch (err) {
    failed(err);
  }
}

// rewind goes back to a record or checkpoint; without one, before the newest turn.
export async function rewind(agent, to) {
  const ok = await ask({
    title: to ? `Rewind to #${to}` : 'Undo the newest turn',
    yes: 'Rewind',
    danger: true,
    body: [
      'What follows leaves the context: the model no longer sees it. It stays in the history, greyed.',
      'Files that the agent changed stay as they are, and replies that were sent stay sent.',
    ],
  });
  if (ok) await run(agent, '/rewind', to ? { to: String(to) } : {}, 'Rewinding between two turns');
}

export async function mark(agent) {
  const name = await ask({
    title: 'Set a checkpoint',
    yes: 'Set',
    body: 'You can rewind to it by its name. Nothing else changes.',
    field: { label: 'Name' },
  });
  if (name) await run(agent, '/mark', { name }, `Checkpoint ${name}`);
}

export async function reset(agent) {
  const ok = await ask({
    title: 'Start a new conversation',
    yes: 'Start',
    danger: true,
    body: ['The model forgets this conversation. The history keeps it.', 'Permissions, model and budget stay.'],
  });
  if (ok) await run(agent, '/reset', undefined, 'A new conversation begins with the next message');
}

export function compact(agent) {
  return run(agent, '/compact', undefined, 'Its context is compacted between two turns');
}

export async function chooseModel(agent, model) {
  try {
    const chosen = await post(agentPath(agent.id, '/model'), { model });
    toast(chosen.problem ? `${chosen.model}: ${chosen.problem}` : `${chosen.model}, from the next turn`);
  } catch (err) {
    failed(err);
  }
}

async function run(agent, path, body, said) {
  try {
    await post(agentPath(agent.id, path), body);
    toast(said);
  } catch (err) {
    failed(err);
  }
}

// button is one of the small buttons at a record.
export function button(name, label, run) {
  return h('button.tap', { type: 'button', 'aria-label': label, title: label, onclick: run }, icon(name));
}
