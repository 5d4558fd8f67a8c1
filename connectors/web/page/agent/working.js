import { h, sign } from '../dom.js';
import { at as timeOf } from '../format.js';

// working is the line under the transcript: what the agent does and since when, and the way to what it asks.
export function working(text, since, kind, ask) {
  return h(
    `p.note.${kind}`,
    sign(kind),
    h('span', text),
    since ? h('span.quiet', 'since ', timeOf(since)) : null,
    ask ? h('a.btn.small', { href: `/approvals/${ask.token}` }, 'Review') : null,
  );
}
