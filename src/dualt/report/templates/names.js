// Names of classes, in full and for narrow places.
const shown = (code) => page.shown[code];
const name = (code) => el("bdi", { title: shown(code) }, shown(code));

// So many characters are seen in the narrowest places; so many of a beginning that is left out are kept.
const ROOM = 16;
const HEAD = 5;
const A_WORD = 8;

// How many characters all texts begin with, back to the start of the word in which they part.
const commonBeginning = (texts) => {
  const [first] = texts;
  let end = 0;
  while (end < first.length && texts.every((text) => text[end] === first[end])) end += 1;
  let start = end;
  while (start > 0 && /[\p{L}\p{M}\p{N}]/u.test(first[start - 1])) start -= 1;
  return end - start <= A_WORD ? start : end - 2;
};

// The places of the texts, as lists of characters, by what they begin with.
const byBeginning = (texts, length) => {
  const groups = new Map();
  texts.forEach((text, place) => {
    const start = text.slice(0, length).join("");
    if (!groups.has(start)) groups.set(start, []);
    groups.get(start).push(place);
  });
  return [...groups.values()];
};
const lookAlike = (texts, room) => byBeginning(texts, room).some((places) =>
  new Set(places.map((place) => texts[place].join(""))).size > 1 && places.some((place) => texts[place].length > room + 2));

// Texts that would be cut to the same beginning get a gap in its place: "class…17", "shop/…bags…red".
// No two become the same: what is left of the beginning differs between groups, and what follows the gap within one.
const toldApart = (texts, room, head = HEAD) => {
  const found = [...texts];
  for (const places of byBeginning(texts, head)) {
    const group = places.map((place) => texts[place]);
    if (!lookAlike(group, room)) continue;
    const cut = commonBeginning(group);
    const rests = () => toldApart(group.map((text) => text.slice(cut)), Math.max(HEAD + 2, room - head - 1));
    const apart = cut > head + 1
      ? rests().map((rest) => [...group[0].slice(0, head), "…", ...rest])
      : toldApart(group, room, head + 3);
    places.forEach((place, i) => { found[place] = apart[i]; });
  }
  return found;
};
const briefNames = toldApart(page.names.map((_, code) => [...shown(code)]), ROOM).map((text) => text.join(""));
const briefly = (code) => briefNames[code] ?? shown(code);

// For narrow places; who listens instead of looking hears the whole name.
const brief = (code) => {
  if (briefly(code) === shown(code)) return name(code);
  const parts = [el("span", { class: "unseen" }, shown(code)), el("span", { "aria-hidden": "true" }, briefly(code))];
  return el("bdi", { title: shown(code) }, ...parts);
};
