// Trash: agents that were removed, and how to have them again.
import { list } from '../catalogue.js';
import { h } from '../dom.js';
import { get, post } from '../api.js';
import { urlOf } from '../state.js';
import { absolute, since } from '../format.js';
import { failed, toast } from '../dialog.js';
import { go } from '../router.js';

export const title = 'Trash';

export function render() {
  return list({
    title,
    read: async () => (await get('/v1/trash')).trash,
    event: /^agent\./,
    empty: 'The trash is empty. A removed agent is kept here with everything it has, until daycare gc removes it.',
    words: (a) => `${a.handle ?? ''} ${a.title ?? ''} ${a.name}`,
    row: (a, again) => ({
      name: [a.handle, a.title].filter(Boolean).join(' ') || a.name,
      about: '',
      facts: [h('time', { datetime: a.at, title: absolute(a.at) }, `removed ${since(a.at)}`), h('span.mono', a.name)],
      action: h(
        'button.btn.small',
        { type: 'button', 'aria-label': `Restore ${a.handle ?? a.name}`, onclick: () => restore(a, again) },
        'Restore',
      ),
    }),
  });
}

async function restore(a, again) {
  try {
    const agent = await post(`/v1/trash/${encodeURIComponent(a.name)}/restore`);
    toast(`${agent.handle} is restored`, { action: { label: 'Open', run: () => go(urlOf(agent)) } });
    again();
  } catch (err) {
    failed(err);
  }
}
