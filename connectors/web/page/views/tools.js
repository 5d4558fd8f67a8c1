// Tools: what agents can do, as the models are told.
import { list } from '../catalogue.js';
import { get } from '../api.js';

export const title = 'Tools';

// REPEATS say what happens to a call that daycare cannot know the result of after a crash.
const REPEATS = { 'read-only': 'only reads', idempotent: 'can be repeated', once: 'never repeated automatically' };

export function render() {
  return list({
    title,
    read: async () => (await get('/v1/tools')).tools,
    event: /^(file|config)\./,
    empty: 'No tools are available.',
    words: (t) => `${t.name} ${t.description}`,
    row: (t) => ({ name: t.name, mono: true, about: t.description, facts: [REPEATS[t.replay] ?? t.replay] }),
  });
}
