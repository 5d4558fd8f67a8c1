// A bar for a share of a whole.
import { svg } from './dom.js';

// COMPACTED is the share of its window at which a context is compacted.
export const COMPACTED = 0.8;

// meter returns a bar, 4 px high, for a part from 0 to 1. kind is a class: 'error' when a limit is reached; tick is
// where a mark is, 0 for none.
export function meter(part, { kind = '', tick = 0 } = {}) {
  const width = `${(Math.max(0, Math.min(1, part || 0)) * 100).toFixed(1)}%`;
  return svg(
    'svg',
    { class: 'meter', height: 4, 'aria-hidden': 'true' },
    svg('rect', { class: 'back', width: '100%', height: 4, rx: 2 }),
    svg('rect', { class: kind || 'full', width, height: 4, rx: 2 }),
    tick ? svg('rect', { class: 'tick', x: `${tick * 100}%`, width: 1.5, height: 4 }) : null,
  );
}
