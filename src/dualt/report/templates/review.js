class Review {
  constructor(host, rows) {
    this.rows = rows;
    this.choices = new Choices(rows);
    this.visible = [];
    this.position = 0;
    this.sieve = new Sieve(rows, this.choices, () => this.sift());
    this.box = el("div", { class: "list", role: "listbox", tabindex: "0", "aria-label": "Labels to review" });
    this.list = new Scroller(this.box, (position) => this.option(position));
    this.card = new Card(rows, (code) => this.decide(code), (step) => this.go(this.position + step), () =>
      this.box.focus({ preventScroll: true }));
    this.clearButton = button("Clear filters", () => this.showPair("", ""), { class: "quiet" });
    this.undoButton = button("Undo", () => this.undo());
    this.undoButton.prepend(key(keyFor("undo")));
    this.saveButton = button(rows.action, () => this.save(), { class: "main" });
    this.bar = el("progress", { max: rows.index.length, "aria-label": "Reviewed" });
    this.tally = el("span");
    this.voice = el("span", { class: "unseen", role: "status" });
    this.least = el("select", { "aria-label": "Least probability" }, ...[0.99, 0.95, 0.9, 0.8].map((share) =>
      el("option", { value: share, selected: share === 0.95 }, percent(share, 0))));
    this.least.addEventListener("change", () => this.count());
    this.takeAll = button("", () => this.decideAll());
    host.append(...this.layout());
    document.body.append(el("aside", { class: "actions", "aria-label": "Decisions" },
      el("div", { class: "progress" }, this.bar, this.tally, this.voice), this.undoButton, this.saveButton));
    document.addEventListener("keydown", (event) => this.press(event));
    this.box.addEventListener("click", ({ target }) => {
      const option = target.closest("[role=option]");
      if (option) this.go(Number(option.dataset.position));
    });
    this.sift();
    this.go(this.nextOpen(-1));
  }

  layout() {
    const byName = keyNames.size ? ["its name", "choose a class"] : null;
    const byPlace = digitsAreNames || page.names.every((text) => keyNames.has(text)) ? null : [page.names.length > 9 && page.names.length <= FEW_CLASSES ? "1–9, 0" : "1–9", "choose a class"];
    const judge = this.rows.blind ? [] : [[keyFor("take"), "take the suggestion"], [keyFor("keep"), `keep the ${page.given.split(" ").at(-1).toLowerCase()}`]];
    const help = [
      [keyFor("next"), "next"], [keyFor("previous"), "previous"], ...judge,
      byName, byPlace, this.card.finder && [keyFor("find"), "find a class by typing"], [keyFor("undo"), "undo"],
    ].filter(Boolean).map(([pressed, text]) => el("span", {}, el("kbd", {}, pressed), text));
    return [
      el("div", { class: "tools" }, ...this.sieve.labels, this.clearButton),
      this.rows.blind || this.rows.doubtful.every(Boolean) ? "" : el("div", { class: "bulk" }, this.takeAll, this.least),
      el("div", { class: "desk" }, this.box, this.card.node),
      el("p", { class: "keys" }, "Keys: ", ...help),
    ];
  }

  // Shows what passes the filters; the selected example stays selected if it does.
  sift() {
    const selected = this.visible[this.position];
    this.clearButton.hidden = this.sieve.isOpen;
    this.visible = this.sieve.passing();
    this.list.reset(this.visible.length);
    const again = this.visible.indexOf(selected);
    this.go(again >= 0 ? again : this.position);
  }

  showPair(given, suggested) {
    this.sieve.set(given, suggested);
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
    const changed = chosen !== undefined && chosen !== given;
    const image = rows.kind === "image" ? preview(rows, row) : null;
    const text = rows.kind === "text" ? rows.previews[row] : null;
    const called = identity(rows, row);
    const hidden = rows.blind && chosen === undefined;
    const about = hidden ? called || "to judge" : `${called || `example ${rows.index[row]}`}, ${percent(rows.right[row])} likely right`;
    const pair = [brief(given), el("span", {}, rows.doubtful[row] ? "or" : "→"), brief(rows.suggested[row])];
    const open = rows.doubtful[row] && !hidden ? (this.sieve.hasGroups ? "doubtful" : `${percent(rows.right[row], 0)} likely`) : "";
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
      image ?? "",
      el(
        "span",
        { class: "what" },
        hidden ? el("span", {}, `Example ${rows.index[row]}`) : el("span", { class: "pair" }, ...pair),
        el("span", { class: "about", dir: "auto" }, text || rows.cells ? [called, text, ...(rows.cells?.[row] ?? [])].filter(Boolean).join(" · ") : about),
      ),
      el("span", { class: changed ? "mark changed" : "mark" }, changed ? `→ ${briefly(chosen)}` : chosen === given ? "kept" : open),
    );
  }

  go(position) {
    const before = this.position;
    this.position = Math.max(0, Math.min(position, this.visible.length - 1));
    this.list.redraw(before);
    if (this.visible.length) this.select(this.visible[this.position]);
    else this.selectNothing();
    this.count();
  }

  select(row) {
    this.list.redraw(this.position);
    this.list.show(this.position);
    this.box.setAttribute("aria-activedescendant", `${this.rows.key}-${row}`);
    this.card.node.hidden = false;
    this.card.show(row, `${whole(this.position + 1)} of ${whole(this.visible.length)}`, this.choices.made.get(row));
  }

  selectNothing() {
    this.box.removeAttribute("aria-activedescendant");
    if (this.card.node.contains(document.activeElement)) this.box.focus();
    this.card.node.hidden = true;
  }

  count() {
    const { made, kept, log } = this.choices;
    const total = this.rows.index.length;
    const changed = [...made].filter(([row, code]) => code !== this.rows.given[row]).length;
    this.bar.value = made.size;
    const note = kept ? "" : " This browser keeps nothing for this page: download before you close it.";
    const words = this.rows.blind ? ["differ from the label", "agree with it"] : ["changed", "kept"];
    const split = `${whole(changed)} ${words[0]}, ${whole(made.size - changed)} ${words[1]}.`;
    this.tally.textContent = `${whole(made.size)} of ${whole(total)} reviewed: ${split}${note}`;
    this.undoButton.disabled = !log.length;
    const sure = this.sure().length;
    this.takeAll.textContent = `Take ${sure === 1 ? "the one suggestion" : `all ${whole(sure)} suggestions`} shown, if at least this likely:`;
    this.takeAll.disabled = !sure;
    this.saveButton.disabled = !made.size;
  }

  // The next example without a choice, or this one if none is left below.
  nextOpen(position) {
    const next = this.visible.findIndex((row, place) => place > position && !this.choices.made.has(row));
    return next < 0 ? position : next;
  }

  // The rows that pass the filters, are still open, and have a suggestion of at least the chosen probability.
  sure() {
    const { rows, choices, least } = this;
    return this.visible.filter((row) =>
      !rows.doubtful[row] && rows.probability[row] >= Number(least.value) && !choices.made.has(row));
  }

  decideAll() {
    const sure = this.sure();
    this.choices.choose(sure.map((row) => [row, this.rows.suggested[row]]));
    this.sift();
    this.list.reset(this.visible.length);
    this.go(this.nextOpen(-1));
    this.voice.textContent = `${whole(sure.length)} suggestions taken. ${this.tally.textContent}`;
  }

  decide(code) {
    const row = this.visible[this.position];
    if (row === undefined) return;
    this.choices.choose([[row, code]]);
    const done = code === this.rows.given[row] ? "kept as" : "changed to";
    if (this.sieve.byState) this.sift();
    else this.go(this.nextOpen(this.position));
    if (this.rows.blind) this.card.compare(row, code);
    this.voice.textContent = `Example ${this.rows.index[row]} ${done} ${shown(code)}. ${this.tally.textContent}`;
  }

  undo() {
    const undone = this.choices.undo();
    if (!undone.length) return;
    const [row] = undone;
    this.sift();
    if (!this.visible.includes(row)) {
      this.sieve.set("", "");
      this.sift();
    }
    this.go(this.visible.indexOf(row));
    const what = undone.length > 1 ? `${whole(undone.length)} decisions` : `example ${this.rows.index[row]}`;
    this.voice.textContent = `Undone: ${what}. ${this.tally.textContent}`;
  }

  save() {
    const { index, ids, given, key: list, columns, blind } = this.rows;
    const { made } = this.choices;
    const label = (code) => (code === undefined ? "" : guardCell(page.names[code]));
    const before = (row) => (this.rows.old ? guardCell(this.rows.old[row]) : label(given[row]));
    const after = (row) => label(made.get(row));
    const cells = {
      index: (row) => String(index[row]),
      id: (row) => guardCell(ids?.[row] ?? ""),
      old: before, given: before, new: after, true: after,
    };
    // An audit can be continued with its download, so that has every row, judged or not.
    const wanted = index.map((_, row) => row).filter((row) => blind || made.has(row));
    wanted.sort((a, b) => index[a] - index[b]);
    download(`${list}-review.csv`, toCsv([columns, ...wanted.map((row) => columns.map((column) => cells[column](row)))]));
  }

  // Keys work wherever the focus is; what is decided must be in sight.
  press(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("select, input, [role=grid]")) return;
    const { key: pressed } = event;
    const code = keyNames.get(pressed) ?? this.card.keyed(pressed);
    const command = commandAt.get(pressed.length === 1 ? pressed.toLowerCase() : pressed);
    const action = code !== undefined ? () => this.decide(code) : this.commands()[command] ?? this.moves(event)[pressed];
    if (!action) return;
    event.preventDefault();
    if (this.inSight) action();
    else this.focus();
  }

  get inSight() {
    const desk = this.box.parentElement;
    const { top, bottom } = desk.getBoundingClientRect();
    return desk.contains(document.activeElement) || (bottom > 0 && top < innerHeight - 100);
  }

  commands() {
    const row = this.visible[this.position];
    const { given, suggested, blind } = this.rows;
    return {
      next: () => this.go(this.position + 1),
      previous: () => this.go(this.position - 1),
      ...(!blind && { take: () => this.decide(suggested[row]), keep: () => this.decide(given[row]) }),
      undo: () => this.undo(),
      find: () => this.card.finder?.input.focus(),
    };
  }

  // In the list the arrow keys move too; elsewhere they scroll the page.
  moves({ target }) {
    if (target !== this.box) return {};
    const leap = Math.max(1, Math.floor(this.box.clientHeight / this.list.height) - 1);
    return {
      ArrowDown: () => this.go(this.position + 1),
      ArrowUp: () => this.go(this.position - 1),
      PageDown: () => this.go(this.position + leap),
      PageUp: () => this.go(this.position - leap),
      Home: () => this.go(0),
      End: () => this.go(this.visible.length - 1),
    };
  }
}
