// Files: what users can edit of agents and of the workspace.
import { Files } from '../fileview.js';

export function title(params) {
  return params.path.at(-1) ?? 'Files';
}

// render shows the file that the URL names, or the settings.
export function render(params) {
  const view = new Files(params.path.length ? params.path : ['settings.yaml']);
  view.open();
  return view.view();
}
