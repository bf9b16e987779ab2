class Review {
  constructor(host, rows) {
    this.rows = rows;
    this.choices = new Choices(`dualt-review:${document.body.dataset.digest}:${rows.key}`, rows.index.length);
    this.visible = [];
    this.position = 0;
    this.filters = {
      given: this.classFilter(rows.given),
      suggested: this.classFilter(rows.suggested),
      state: this.filter([["all", "all"], ["open", "to review"], ["done", "reviewed"]]),
    };
    this.box = el("div", { class: "list", role: "listbox", tabindex: "0", "aria-label": "Labels to review" });
    this.list = new Scroller(this.box, (position) => this.option(position));
    this.card = new Card(rows, { decide: (code) => this.decide(code), move: (step) => this.go(this.position + step) });
    this.undoButton = button("Undo", () => this.undo());
    this.undoButton.prepend(key("u"));
    this.saveButton = button("Download corrected labels", () => this.save(), { class: "main" });
    this.bar = el("progress", { max: rows.index.length, "aria-label": "Reviewed" });
    this.tally = el("span");
    this.voice = el("span", { class: "unseen", role: "status" });
    host.append(...this.layout());
    host.parentElement.addEventListener("keydown", (event) => this.press(event));
    this.box.addEventListener("click", ({ target }) => {
      const option = target.closest("[role=option]");
      if (option) this.go(Number(option.dataset.position));
    });
    this.sift();
    this.go(Math.max(0, this.nextOpen(-1)));
  }

  layout() {
    const label = (text, select) => el("label", {}, text, select);
    const { given, suggested, state } = this.filters;
    const tools = [label("Given", given), label("Suggested", suggested), label("Show", state)];
    const help = [["j", "next"], ["k", "previous"], ["a", "take the suggestion"], ["x", "or 0 keep"], ["1–9", "choose a class"], ["u", "undo"]];
    return [
      el("div", { class: "tools" }, ...tools, el("span", { class: "gap" }), this.undoButton, this.saveButton),
      el("div", { class: "progress" }, this.bar, this.tally, this.voice),
      el("div", { class: "desk" }, this.box, this.card.node),
      el("p", { class: "keys" }, "Keys, once you have clicked or tabbed into the list: ", ...help.map(([name, text]) => el("span", {}, el("kbd", {}, name), text))),
    ];
  }

  filter(options) {
    const select = el("select", {}, ...options.map(([value, text]) => el("option", { value }, text)));
    select.addEventListener("change", () => this.sift());
    return select;
  }

  classFilter(codes) {
    const counts = new Map();
    for (const code of codes) counts.set(code, (counts.get(code) ?? 0) + 1);
    const options = [...counts].sort((a, b) => a[0] - b[0]).map(([code, n]) => [code, `${shown(code)} (${whole(n)})`]);
    return this.filter([["", "any"], ...options]);
  }

  // Keeps the rows that pass the filters, and the selected one selected if it does.
  sift() {
    const { rows, choices } = this;
    const given = this.filters.given.value;
    const suggested = this.filters.suggested.value;
    const state = this.filters.state.value;
    const selected = this.visible[this.position];
    this.visible = rows.index.map((_, row) => row).filter((row) =>
      (given === "" || rows.given[row] === Number(given)) &&
      (suggested === "" || rows.suggested[row] === Number(suggested)) &&
      (state === "all" || choices.made.has(row) === (state === "done")));
    this.list.reset(this.visible.length);
    const again = this.visible.indexOf(selected);
    this.go(again >= 0 ? again : Math.min(this.position, this.visible.length - 1));
  }

  showPair(given, suggested) {
    const { filters } = this;
    filters.given.value = given;
    filters.suggested.value = suggested;
    filters.state.value = "all";
    for (const select of [filters.given, filters.suggested]) if (select.selectedIndex < 0) select.value = "";
    this.sift();
    this.focus();
  }

  focus() {
    this.box.closest("section").scrollIntoView();
    this.box.focus({ preventScroll: true });
  }

  option(position) {
    const { rows, visible, choices } = this;
    const row = visible[position];
    const given = rows.given[row];
    const chosen = choices.made.get(row);
    const verdict = chosen === undefined ? "" : chosen === given ? "kept" : `→ ${shown(chosen)}`;
    const image = rows.kind === "image" ? preview(rows, row) : null;
    const text = rows.kind === "text" ? rows.previews[row] : null;
    image?.setAttribute("alt", "");
    return el(
      "div",
      {
        role: "option",
        id: `${rows.key}-${row}`,
        "data-position": position,
        "aria-selected": String(position === this.position),
        "aria-setsize": visible.length,
        "aria-posinset": position + 1,
      },
      ...(image ? [image] : []),
      el(
        "span",
        { class: "what" },
        el("span", {}, name(given), " → ", name(rows.suggested[row])),
        text ? el("span", { class: "snippet", dir: "auto" }, text) : el("span", { class: "row-number" }, `example ${rows.index[row]}, ${percent(rows.right[row])} likely right`),
      ),
      el("span", { class: `mark${chosen !== undefined && chosen !== given ? " changed" : ""}` }, verdict),
    );
  }

  go(position) {
    const before = this.position;
    this.position = Math.max(0, Math.min(position, this.visible.length - 1));
    const row = this.visible[this.position];
    this.card.node.hidden = row === undefined;
    this.list.redraw(before);
    if (row !== undefined) {
      this.list.redraw(this.position);
      this.list.show(this.position);
      this.box.setAttribute("aria-activedescendant", `${this.rows.key}-${row}`);
      this.card.show(row, `${whole(this.position + 1)} of ${whole(this.visible.length)}`, this.choices.made.get(row));
    }
    this.count();
  }

  count() {
    const { made, kept, log } = this.choices;
    const total = this.rows.index.length;
    const changed = [...made].filter(([row, code]) => code !== this.rows.given[row]).length;
    this.bar.value = made.size;
    const note = kept ? "" : " This browser keeps nothing for this page: download before you close it.";
    this.tally.textContent = `${whole(made.size)} of ${whole(total)} reviewed: ${whole(changed)} changed, ${whole(made.size - changed)} kept.${note}`;
    this.undoButton.disabled = !log.length;
    this.saveButton.disabled = !made.size;
  }

  nextOpen(position) {
    return this.visible.findIndex((row, place) => place > position && !this.choices.made.has(row));
  }

  decide(code) {
    const row = this.visible[this.position];
    if (row === undefined) return;
    this.choices.choose(row, code);
    const done = code === this.rows.given[row] ? "kept as" : "changed to";
    if (this.filters.state.value === "all") {
      const next = this.nextOpen(this.position);
      this.go(next < 0 ? this.position : next);
    } else this.sift();
    this.voice.textContent = `Example ${this.rows.index[row]} ${done} ${shown(code)}. ${this.tally.textContent}`;
  }

  undo() {
    const row = this.choices.undo();
    if (row === null) return;
    this.sift();
    if (!this.visible.includes(row)) {
      for (const select of Object.values(this.filters)) select.selectedIndex = 0;
      this.sift();
    }
    this.go(this.visible.indexOf(row));
    this.voice.textContent = `Undone: example ${this.rows.index[row]}. ${this.tally.textContent}`;
  }

  save() {
    const { index, given, key: list } = this.rows;
    const made = [...this.choices.made].sort(([a], [b]) => index[a] - index[b]);
    const label = (code) => guardCell(page.names[code]);
    const body = made.map(([row, code]) => [String(index[row]), label(given[row]), label(code)]);
    download(`${list}-review.csv`, toCsv([["index", "old", "new"], ...body]));
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select")) return;
    const row = this.visible[this.position];
    const { given, suggested } = this.rows;
    const inList = event.target === this.box;
    const leap = Math.max(1, Math.floor(this.box.clientHeight / this.list.height) - 1);
    const actions = {
      j: () => this.go(this.position + 1),
      k: () => this.go(this.position - 1),
      a: () => this.decide(suggested[row]),
      x: () => this.decide(given[row]),
      0: () => this.decide(given[row]),
      u: () => this.undo(),
      ...(inList && {
        ArrowDown: () => this.go(this.position + 1),
        ArrowUp: () => this.go(this.position - 1),
        PageDown: () => this.go(this.position + leap),
        PageUp: () => this.go(this.position - leap),
        Home: () => this.go(0),
        End: () => this.go(this.visible.length - 1),
      }),
    };
    const code = /^[1-9]$/.test(event.key) ? this.card.keyed(event.key) : undefined;
    const action = code === undefined ? actions[event.key] : () => this.decide(code);
    if (!action) return;
    event.preventDefault();
    action();
  }
}
