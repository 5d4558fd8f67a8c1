// Settings: a form of settings.yaml beside its text, which change the same edit, published as any file; and the browsers
// that are logged in.
import { h } from '../dom.js';
import { get } from '../api.js';
import { failed } from '../dialog.js';
import { Form } from '../settingsform.js';
import { Files } from '../fileview.js';
import { sessions } from '../sessions.js';

export const title = 'Settings';

export function render() {
  const view = new Files(['settings.yaml'], { heading: title, kind: 'settings', beside: (edit) => left(edit) });
  view.open();
  return view.view();
}

// left is what is beside the text: the form for an edit, {changed(text), goTo(line)}, once schema and settings are read.
async function left({ changed, goTo }) {
  try {
    const [schema, active] = await Promise.all([get('/v1/schema/settings'), get('/v1/config')]);
    const form = new Form({ schema, active, changed, goTo });
    return { node: h('div.left', form.node, sessions()), show: (text) => form.show(text) };
  } catch (err) {
    failed(err);
    return null;
  }
}
