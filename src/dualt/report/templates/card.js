const FEW_CLASSES = 12;

// The classes offered as buttons: all if they are few, else the likeliest for this given label, unless that would tell it.
const offered = (rows, row) => {
  const [given, suggested] = [rows.given[row], rows.suggested[row]];
  if (page.names.length <= FEW_CLASSES) return page.names.map((_, code) => code);
  if (rows.blind) return [];
  const likely = [suggested, ...(page.likely[given] ?? [])].filter((code) => code !== given);
  return [...new Set(likely)].slice(0, 8);
};

const button = (text, action, attributes = {}) => {
  const node = el("button", { type: "button", ...attributes }, text);
  node.addEventListener("click", action);
  return node;
};
const key = (text) => el("kbd", { "aria-hidden": "true" }, text);

// The example being judged, large, with everything one can decide about it.
class Card {
  constructor(rows, decide, move, leave) {
    this.rows = rows;
    this.number = el("span");
    this.place = el("span");
    this.ident = el("div", { class: "ident", dir: "auto" });
    this.view = el("div", { class: "view" });
    this.cells = el("dl", { class: "cells" });
    this.notes = el("ul", { class: "notes" });
    this.given = el("dd");
    this.suggested = el("dd");
    this.rival = el("dt");
    this.keep = button("", () => decide(rows.given[this.row]), { class: "big" });
    this.take = button("", () => decide(rows.suggested[this.row]), { class: "big main" });
    this.classes = el("div", { class: "choices", role: "group", "aria-label": "Choose a class" });
    this.finder = page.names.some((_, code) => code >= FEW_CLASSES || !keyOf(code, code)) ? new Finder(`${rows.key}-found`, decide, leave) : null;
    this.labels = el(
      "dl",
      { class: "labels" },
      el("div", {}, el("dt", {}, page.given), this.given),
      el("div", {}, this.rival, this.suggested),
    );
    this.question = el("p", { class: "question" }, "Which class is it?");
    this.verdict = el("p", { class: "meta", role: "status" });
    this.node = el(
      "div",
      { class: "card", tabindex: "-1", role: "group", "aria-label": "The selected example" },
      el("div", { class: "head" }, this.number, this.place),
      this.ident,
      this.view,
      this.cells,
      ...(rows.blind ? [this.question, this.labels] : [this.labels, el("div", { class: "choices" }, this.keep, this.take)]),
      this.classes,
      this.finder?.node ?? "",
      this.notes,
      el("div", { class: "choices" }, button("Previous", () => move(-1)), button("Next", () => move(1))),
      ...(rows.blind ? [this.verdict] : []),
    );
    this.classes.addEventListener("click", ({ target }) => {
      const chosen = target.closest("button");
      if (chosen) decide(Number(chosen.dataset.code));
    });
  }

  show(row, place, chosen) {
    const { rows } = this;
    this.row = row;
    const given = rows.given[row];
    const suggested = rows.suggested[row];
    this.number.textContent = `Example ${rows.index[row]}`;
    this.place.textContent = place;
    this.ident.textContent = identity(rows, row);
    this.ident.hidden = !this.ident.textContent;
    this.given.replaceChildren(name(given), " ", el("small", {}, `${percent(rows.right[row])} likely`));
    const likely = rows.probability[row] === null ? [] : [" ", el("small", {}, `${percent(rows.probability[row])} likely`)];
    this.rival.textContent = rows.doubtful[row] ? "Second likeliest" : "Suggested";
    this.suggested.replaceChildren(name(suggested), ...likely);
    this.keep.replaceChildren(key(keyFor("keep")), "Keep ", name(given));
    // The likelier of the two stands out.
    this.keep.classList.toggle("main", Boolean(rows.doubtful[row]));
    this.take.classList.toggle("main", !rows.doubtful[row]);
    this.take.replaceChildren(key(keyFor("take")), "Take ", name(suggested));
    this.keep.setAttribute("aria-pressed", chosen === given);
    this.take.setAttribute("aria-pressed", chosen === suggested);
    this.view.hidden = !rows.previews;
    this.cells.hidden = !rows.cells;
    this.cells.replaceChildren(...(rows.cells?.[row] ?? []).map((text, i) =>
      el("div", {}, el("dt", { dir: "auto" }, rows.fields[i]), el("dd", { dir: "auto" }, text || "–"))));
    // Where the class is still to be judged, what others said would tell.
    this.notes.hidden = !rows.notes?.[row].length || (rows.blind && chosen === undefined);
    this.notes.replaceChildren(...(rows.notes?.[row] ?? []).map((text) => el("li", { dir: "auto" }, text)));
    this.view.replaceChildren(preview(rows, row) ?? el("p", { class: "empty" }, "No preview"));
    // A blind list asks first; what the label says is shown once a class was chosen.
    this.question.hidden = chosen !== undefined;
    this.labels.hidden = rows.blind && chosen === undefined;
    this.offer(offered(rows, row), chosen);
  }

  // Buttons are reused from example to example, so that the one with the focus keeps it.
  offer(codes, chosen) {
    while (this.classes.children.length > codes.length) this.classes.lastChild.remove();
    while (this.classes.children.length < codes.length) this.classes.append(el("button", { type: "button" }));
    codes.forEach((code, place) => {
      const node = this.classes.children[place];
      const hint = keyOf(code, place);
      node.dataset.code = code;
      node.dataset.key = hint ?? "";
      node.setAttribute("aria-pressed", chosen === code);
      node.replaceChildren(...(hint && hint !== page.names[code] ? [key(hint)] : []), name(code));
    });
  }

  // What the label said of the example that was just judged.
  compare(row, chosen) {
    const { rows } = this;
    const same = chosen === rows.given[row];
    this.verdict.replaceChildren(
      `Example ${rows.index[row]}: you chose `, name(chosen), same ? ", as its label says." : "; its label says ",
      ...(same ? [] : [name(rows.given[row]), "."]),
    );
  }

  keyed(pressed) {
    const node = [...this.classes.children].find((child) => child.dataset.key === pressed);
    return node && Number(node.dataset.code);
  }
}

// What the user calls an example: its id and the name of its file, once if they are the same. Where the class is still to
// be judged, the folder, which may be named by the label, is left out.
const identity = (rows, row) => {
  const names = [rows.ids?.[row], rows.files?.[row]].filter(Boolean);
  return [...new Set(rows.blind ? names.map((text) => text.split("/").at(-1)) : names)].join(" · ");
};

const preview = (rows, row) => {
  const content = rows.previews?.[row];
  if (content === undefined || content === null) return null;
  if (rows.kind === "text") return el("p", { dir: "auto" }, content);
  return el("img", { src: content, alt: `Example ${rows.index[row]}`, class: rows.pixelated ? "pixelated" : null });
};
