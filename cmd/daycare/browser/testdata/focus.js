// Describes what has the focus now, compared with what had it at the last call.
(() => {
  const e = document.activeElement;
  if (!e || e === document.body || e === document.documentElement) return { Name: "", Ordered: true, Seen: true, Inside: true };
  const before = window.focusedBefore;
  const ordered = !before || !before.isConnected || !!(before.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING);
  window.focusedBefore = e;
  const style = getComputedStyle(e);
  const outlined = s => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0;
  let seen = outlined(style);
  for (let up = e.parentElement; up && !seen; up = up.parentElement) seen = up.matches(":focus-within") && outlined(getComputedStyle(up));
  const box = e.getBoundingClientRect();
  const inside = box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
  const name = e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent || e.placeholder || e.title || "";
  return { Name: `${e.tagName.toLowerCase()} ${name.trim().replace(/\s+/g, " ").slice(0, 60)}`, Ordered: ordered, Seen: seen, Inside: inside };
})()
