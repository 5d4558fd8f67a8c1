// The files that can be edited, as a tree.
import { h, icon } from './dom.js';
import { allAgents, daemonStatus } from './store.js';
import { nameOf } from './state.js';
import { OF_AGENT, OF_WORKSPACE, urlOf } from './place.js';
import { redrawIf } from './redraw.js';

// drawTree draws the tree; url is the file that is open, agent the id of the agent that it is of.
export function drawTree(tree, url, agent) {
  const broken = (daemonStatus()?.problems ?? []).map((p) => p.file);
  const link = (href, name, path) =>
    h(
      'a',
      { href, 'aria-current': href === url ? 'page' : null },
      h('span.cut', name),
      broken.some((f) => f.endsWith(path)) && icon('warn', 'it has a problem'),
    );
  const agents = allAgents().filter((a) => a.state !== 'ended');
  const shown = [broken, url, agents.map((a) => [a.id, a.handle, nameOf(a)])];
  redrawIf(tree, shown, () => [
    h('h2', 'Workspace'),
    h(
      'ul',
      OF_WORKSPACE.map((n) => h('li', link(`/files/${n}`, n, n))),
    ),
    agents.length > 0 && h('h2', 'Agents'),
    agents.map((a) =>
      h(
        'details',
        { open: a.id === agent, 'data-key': a.id },
        h('summary', h('span.mono', a.handle), h('span.cut', nameOf(a))),
        h(
          'ul',
          OF_AGENT.map((n) => h('li', link(urlOf(a, n), n, `${a.id}/${n}`))),
        ),
      ),
    ),
  ]);
}
