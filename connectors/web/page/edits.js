// Edits of files that were not published, in the browser's storage.

// DRAFT is where edits are kept that were not published, by the path of their file.
const DRAFT = 'daycare.edit.';

// draftOf returns the stored edit of a file, or null.
export function draftOf(file) {
  try {
    return JSON.parse(localStorage.getItem(DRAFT + file.path) ?? 'null');
  } catch {
    return null;
  }
}

// keepDraft stores an edit until it is published; null forgets it.
export function keepDraft(file, draft) {
  try {
    if (draft) localStorage.setItem(DRAFT + file.path, JSON.stringify(draft));
    else localStorage.removeItem(DRAFT + file.path);
  } catch {
    /* the browser keeps nothing: the edit is in this tab alone */
  }
}
