// What is done with an agent and its conversation. Fork, rewind and the like ask first, and say what will and
// what will not change.
import { h, icon, named, plain } from '../dom.js';
import { get, post, agentPath, readFile, writeFile } from '../api.js';
import { ask, failed, toast } from '../dialog.js';
import { plural } from '../format.js';
import { go } from '../router.js';
import { nameOf, urlOf } from '../state.js';

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

// rename changes the name in the descriptor of an agent.
export async function rename(agent) {
  const name = await ask({
    title: `Rename ${agent.handle}`,
    yes: 'Rename',
    field: { label: 'Name', value: nameOf(agent) },
    body: 'Its handle and its conversation stay. Other agents find it by the new name.',
  });
  if (!name || name === nameOf(agent)) return;
  try {
    const path = agentPath(agent.id, '/files/descriptor.json');
    const { text, etag } = await readFile(path);
    await writeFile(path, `${JSON.stringify({ ...JSON.parse(text), name }, null, 2)}\n`, etag);
    toast(`${agent.handle} is ${name} now`);
  } catch (err) {
    failed(err);
  }
}

// rewind goes back to a record or checkpoint; without one, before the newest turn. If the agent's tools wrote files since,
// they can be taken back, too.
export async function rewind(agent, to) {
  let files = [];
  try {
    ({ files } = await get(agentPath(agent.id, `/undo?rewind=true&to=${to ?? ''}`)));
  } catch (err) {
    failed(err);
    return;
  }
  files = files.filter((f) => f.standing !== 'before');
  const ready = files.filter((f) => f.standing === 'ready');
  const too = h('input', { type: 'checkbox' });
  const ok = await ask({
    title: to ? `Rewind to #${to}` : 'Undo the newest turn',
    yes: 'Rewind',
    danger: true,
    body: [
      'Everything after it leaves the context: the model no longer sees it. It stays in the history, greyed. Replies that were sent stay sent.',
      files.length ? h('p', 'Its tools have written these files since then:') : 'Its tools have written no files since then that can be taken back.',
      files.length ? standings(files) : null,
      ready.length ? h('label.check', too, `Take back ${plural(ready.length, 'file')}, as before these turns`) : null,
    ].filter(Boolean),
  });
  if (!ok) return;
  try {
    const order = await post(agentPath(agent.id, '/rewind'), to ? { to: String(to) } : {});
    toast('Rewinding between two turns');
    if (!too.checked) return;
    await carriedOut(agent, order.item);
    await takeBack(agent, ready.map((f) => f.path));
  } catch (err) {
    failed(err);
  }
}

const STANDINGS = {
  ready: 'can be taken back',
  before: 'is as it was before',
  between: 'someone else changed it in between',
  since: 'someone else changed it since',
  again: 'the agent wrote it again since',
  gone: 'its earlier content was not kept',
};

// standings is a list of files and how they stand; boxes are what is put before each of them.
function standings(files, boxes = []) {
  return h(
    'ul.taken',
    files.map((f, i) => h('li', h('label.check', boxes[i], h('code', named(f.path)), h('small', STANDINGS[f.standing])))),
  );
}

// WAIT_MS is how often the inbox is looked at until an order is carried out, in milliseconds.
const WAIT_MS = 300;

// carriedOut waits until an agent has carried out an order.
async function carriedOut(agent, item) {
  for (;;) {
    const { items } = await get(agentPath(agent.id, '/inbox'));
    if (!items.some((i) => i.id === item)) return;
    await new Promise((done) => setTimeout(done, WAIT_MS));
  }
}

// takeBack takes files back and says what became of them.
async function takeBack(agent, paths, merge = false) {
  const { results } = await post(agentPath(agent.id, '/undo'), { paths, merge });
  const left = results.filter((r) => r.outcome === 'refused').map((r) => `${plain(r.path)} is left: ${r.why}`);
  toast([`${plural(results.length - left.length, 'file')} taken back`, ...left].join('. '), { ms: left.length ? 8000 : 5000 });
}

// undo takes back files that the agent's tools wrote in turns that are rewound.
export async function undo(agent) {
  try {
    const { files } = await get(agentPath(agent.id, '/undo'));
    const boxes = files.map((f) => h('input', { type: 'checkbox', disabled: ['before', 'again', 'gone'].includes(f.standing) }));
    files.forEach((f, i) => {
      boxes[i].checked = f.standing === 'ready';
    });
    const merge = h('input', { type: 'checkbox' });
    const ok = await ask({
      title: 'Take files back',
      yes: files.length ? 'Take back' : 'Close',
      danger: files.length > 0,
      body: files.length
        ? [
            'Files that its tools wrote in rewound turns become what they were before those turns.',
            standings(files, boxes),
            files.some((f) => f.standing === 'since')
              ? h('label.check', merge, 'Keep what others changed since, if it touches other lines')
              : null,
          ].filter(Boolean)
        : 'Its tools wrote no files in rewound turns.',
    });
    const paths = files.filter((_, i) => boxes[i].checked).map((f) => f.path);
    if (ok && paths.length) await takeBack(agent, paths, merge.checked);
  } catch (err) {
    failed(err);
  }
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
