// Skills: instructions that agents read when they need them.
import { list } from '../catalogue.js';
import { h, plain } from '../dom.js';
import { get } from '../api.js';

export const title = 'Skills';

export function render() {
  return list({
    title,
    read: async () => (await get('/v1/skills')).skills,
    event: /^(file|config)\./,
    empty: 'No skills are installed. A skill is a folder with a SKILL.md: .daycare/skills/NAME/SKILL.md.',
    words: (s) => `${s.name} ${s.description}`,
    row: (s) => ({
      name: s.name,
      about: s.description,
      facts: [
        s.tools && `tools: ${plain(s.tools)}`,
        s.file && h('span.mono', { title: plain(s.file) }, plain(s.file.replace(/^.*\/(?=\.daycare\/)/, ''))),
        s.sha256 && h('span.mono', { title: s.sha256 }, s.sha256.slice(0, 8)),
      ],
    }),
  });
}
