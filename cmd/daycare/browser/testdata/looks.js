// Returns what is wrong with the page as it is now: a list of sentences, empty if all is well.
(() => {
  const wrong = [];
  const say = (element, what) => {
    const text = (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    wrong.push(`${element.tagName.toLowerCase()}${element.id ? "#" + element.id : ""}` +
      `${typeof element.className === "string" && element.className ? "." + element.className.trim().replace(/\s+/g, ".") : ""}` +
      `${text ? ` "${text}"` : ""}: ${what}`);
  };
  const visible = element => element.checkVisibility({ visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true });
  const all = selector => [...document.querySelectorAll(selector)].filter(visible);
  const dialog = [...document.querySelectorAll("dialog[open]")].pop();
  const scope = element => !dialog || dialog.contains(element); // what a modal dialog covers is not reached

  // Landmarks, headings, names.
  if (!document.documentElement.lang) wrong.push("html has no lang");
  if (!document.title.trim()) wrong.push("the page has no title");
  if (all("main").length !== 1) wrong.push(`${all("main").length} elements main`);
  for (const e of all("nav, aside")) {
    if (!e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby")) say(e, "a landmark without a name");
  }
  const names = all("nav").map(e => e.getAttribute("aria-label"));
  if (new Set(names).size !== names.length) wrong.push(`two nav have the same name: ${names}`);
  if (all("main h1").length !== 1) wrong.push(`${all("main h1").length} elements h1 in main`);
  let level = 0;
  for (const e of all("main h1, main h2, main h3, main h4")) {
    const n = +e.tagName[1];
    if (n > level + 1 && level > 0) say(e, `a heading of level ${n} after one of level ${level}`);
    level = n;
  }
  const ids = new Set();
  for (const e of document.querySelectorAll("[id]")) {
    if (ids.has(e.id)) say(e, "its id is there twice");
    ids.add(e.id);
  }
  for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls", "aria-activedescendant", "for"]) {
    for (const e of document.querySelectorAll(`[${attribute}]`)) {
      for (const id of e.getAttribute(attribute).split(/\s+/)) {
        if (id && !document.getElementById(id)) say(e, `${attribute} names ${id}, which is not there`);
      }
    }
  }
  for (const e of document.querySelectorAll("[tabindex]")) if (e.tabIndex > 0) say(e, "tabindex above 0");

  // No sideways scrolling, nothing beyond the window.
  const width = document.documentElement.clientWidth;
  for (const e of [document.documentElement, document.body, ...all("main")]) {
    if (e.scrollWidth > e.clientWidth + 1) say(e, `scrolls sideways: ${e.scrollWidth} in ${e.clientWidth}`);
  }
  const clipped = e => { // by something that scrolls or cuts by itself
    for (let up = e.parentElement; up; up = up.parentElement) {
      if (up !== document.body && getComputedStyle(up).overflowX !== "visible" && up.getBoundingClientRect().right <= width + 1) return true;
    }
    return false;
  };
  for (const e of all("main *")) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > width + 1 && !clipped(e)) say(e, `ends at ${Math.round(box.right)} of ${width}`);
  }

  // Contrast. A colour in any notation becomes bytes by being drawn.
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const bytes = colour => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => v * a + under[i] * (1 - a));
  const ground = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const colour = bytes(getComputedStyle(e).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), bytes("Canvas").slice(0, 3));
  };
  const opacity = element => {
    let value = 1;
    for (let e = element; e; e = e.parentElement) value *= +getComputedStyle(e).opacity;
    return value;
  };
  const light = rgb => {
    const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [hi, lo] = [light(a), light(b)].sort((x, y) => y - x);
    return (hi + 0.05) / (lo + 0.05);
  };
  const disabled = e => e.closest(":disabled, [aria-disabled=true], .lost main .btn:not(.keep)");
  const measure = (e, colour, least, what) => {
    const under = ground(e);
    const [r, g, b, a] = bytes(colour);
    const got = ratio(over([r, g, b, a * opacity(e)], under), under);
    if (got < least - 0.005) {
      say(e, `${what} has a contrast of ${got.toFixed(2)}, needs ${least} (${colour} on ${under.map(Math.round)})`);
    }
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || seen.has(e) || !visible(e) || !scope(e) || disabled(e)) continue;
    if (e.closest("script, style, .vh, .skip, option, [aria-hidden=true]")) continue;
    seen.add(e);
    const style = getComputedStyle(e);
    const size = parseFloat(style.fontSize);
    if (size < 11) say(e, `text of ${size} px`);
    const large = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700);
    measure(e, e instanceof SVGElement ? style.fill : style.color, large ? 3 : 4.5, "text");
  }
  for (const e of all("input, textarea").filter(scope)) {
    if (e.placeholder && !e.value) measure(e, getComputedStyle(e, "::placeholder").color, 4.5, "the placeholder");
  }
  for (const e of all("svg[role=img]").filter(scope)) {
    measure(e, getComputedStyle(e).color, 3, "the sign");
  }

  // Targets: at least 24 pixels, or so far from others that a circle of 24 fits (WCAG 2.5.8).
  const targets = all("a[href], button, input, select, textarea, summary, [role=button], [role=option], [role=tab]")
    .filter(e => scope(e) && e.type !== "hidden" && !e.closest(".vh, .skip"));
  for (const e of targets) {
    const box = e.getBoundingClientRect();
    if (e.matches("a") && getComputedStyle(e).display === "inline") continue; // in a text
    if (e.closest("label")) continue; // the label is the target
    const cover = getComputedStyle(e, "::after");
    if (cover.content !== "none" && cover.position === "absolute") continue; // the whole row is the target
    if (box.width && (box.width < 23.5 || box.height < 23.5)) {
      say(e, `a target of ${Math.round(box.width)}×${Math.round(box.height)} pixels`);
    }
  }
  return wrong;
})()
