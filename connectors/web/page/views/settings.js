// Settings: a form of settings.yaml beside its text. Both change the same edit, which is published as any file.
import { get } from '../api.js';
import { failed } from '../dialog.js';
import { Form } from '../settingsform.js';
import { Files } from '../fileview.js';

export const title = 'Settings';

export function render() {
  const view = new Files(['settings.yaml'], { heading: title, kind: 'settings', beside: (edit) => form(edit) });
  view.open();
  return view.view();
}

// form makes the form for an edit, {changed(text), goTo(line)}, once schema and settings are read.
async function form({ changed, goTo }) {
  try {
    const [schema, active] = await Promise.all([get('/v1/schema/settings'), get('/v1/config')]);
    return new Form({ schema, active, changed, goTo });
  } catch (err) {
    failed(err);
    return null;
  }
}
