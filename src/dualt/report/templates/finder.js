// A field to find a class by a part of its name: arrows move through what matches, Enter chooses.
class Finder {
  constructor(id, choose, leave) {
    this.choose = choose;
    this.leave = leave;
    this.codes = [];
    this.position = 0;
    this.list = el("div", { class: "found", role: "listbox", id, "aria-label": "Classes that match", hidden: true });
    this.input = el("input", {
      type: "text", role: "combobox", placeholder: "Find a class", autocomplete: "off", spellcheck: "false",
      "aria-label": "Find a class", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": id,
    });
    this.node = el("div", { class: "finder" }, this.input, this.list);
    this.input.addEventListener("focus", () => this.match());
    this.input.addEventListener("input", () => this.match());
    this.input.addEventListener("blur", () => this.close());
    this.input.addEventListener("keydown", (event) => this.press(event));
    this.list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const option = event.target.closest("[role=option]");
      if (option) this.take(Number(option.dataset.place));
    });
  }

  // The classes that begin with the text come first; of very many, the first hundred.
  match() {
    const wanted = this.input.value.trim().toLowerCase();
    const texts = page.names.map((_, code) => shown(code).toLowerCase());
    const rank = (code) => (texts[code] === wanted ? 0 : texts[code].startsWith(wanted) ? 1 : 2);
    this.codes = texts.map((_, code) => code).filter((code) => texts[code].includes(wanted))
      .sort((a, b) => rank(a) - rank(b) || a - b).slice(0, 100);
    this.list.replaceChildren(...this.codes.map((code, place) =>
      el("div", { role: "option", id: `${this.list.id}-${place}`, "data-place": place }, name(code))));
    if (!this.codes.length) this.list.append(el("div", { class: "empty" }, "No class has this in its name."));
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.move(0);
  }

  move(position) {
    this.position = Math.max(0, Math.min(position, this.codes.length - 1));
    [...this.list.children].forEach((node, place) => node.setAttribute("aria-selected", place === this.position));
    if (!this.codes.length) return this.input.removeAttribute("aria-activedescendant");
    this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.position}`);
    this.list.children[this.position].scrollIntoView({ block: "nearest" });
  }

  close() {
    this.list.hidden = true;
    this.input.value = "";
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  take(place) {
    if (this.codes[place] === undefined) return;
    this.choose(this.codes[place]);
    this.leave();
  }

  press(event) {
    const actions = {
      ArrowDown: () => this.move(this.position + 1),
      ArrowUp: () => this.move(this.position - 1),
      Enter: () => this.take(this.position),
      Escape: () => this.leave(),
    };
    if (event.isComposing || !actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }
}
