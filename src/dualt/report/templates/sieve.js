// The filters over a review list: by class pair, by what is still to do, and by a text in what is known of an example.
class Sieve {
  constructor(rows, choices, changed) {
    this.rows = rows;
    this.choices = choices;
    this.changed = changed;
    this.given = this.classes(rows.given);
    this.suggested = this.classes(rows.suggested);
    this.state = this.select([["all", "all"], ["open", "to review"], ["done", "reviewed"]]);
    const doubtful = rows.doubtful.filter(Boolean).length;
    this.hasGroups = doubtful > 0 && doubtful < rows.index.length;
    this.group = this.select([
      ["", `all (${whole(rows.index.length)})`],
      ["wrong", `probably wrong (${whole(rows.index.length - doubtful)})`],
      ["doubtful", `doubtful (${whole(doubtful)})`],
    ]);
    this.search = el("input", { type: "search", autocomplete: "off", placeholder: rows.kind === "text" || rows.cells ? "id or text" : "id or name" });
    this.search.addEventListener("input", this.changed);
    // Where the class is still to be judged, no filter may tell the label.
    const byClass = rows.blind ? [] : [["Group", this.group], [givenWord, this.given], ["Suggested", this.suggested]];
    this.labels = [["Search", this.search], ...byClass, ["Show", this.state]].map(([text, field]) =>
      el("label", { hidden: field === this.group && !this.hasGroups }, text, field));
  }

  select(options) {
    const select = el("select", {}, ...options.map(([value, text]) => el("option", { value }, text)));
    select.addEventListener("change", this.changed);
    return select;
  }

  classes(codes) {
    const counts = new Map();
    for (const code of codes) counts.set(code, (counts.get(code) ?? 0) + 1);
    const sorted = [...counts].sort(([a], [b]) => a - b);
    return this.select([["", "any"], ...sorted.map(([code, n]) => [code, `${shown(code)} (${whole(n)})`])]);
  }

  // What the search looks through: made when it is first needed.
  get texts() {
    const { rows } = this;
    const text = (row) => (rows.kind === "text" ? rows.previews[row] : "");
    const words = (row) => [rows.index[row], identity(rows, row), text(row), ...(rows.cells?.[row] ?? [])];
    this.searched ??= rows.index.map((_, row) => words(row).join("\n").toLowerCase());
    return this.searched;
  }

  get isOpen() {
    return !(this.group.value || this.given.value || this.suggested.value || this.byState || this.search.value);
  }

  get byState() {
    return this.state.value !== "all";
  }

  // The rows that pass, in the order of the list.
  passing() {
    const { rows, choices } = this;
    const tests = [];
    if (this.group.value) tests.push((row) => (this.group.value === "doubtful") === Boolean(rows.doubtful[row]));
    if (this.given.value) tests.push((row) => rows.given[row] === Number(this.given.value));
    if (this.suggested.value) tests.push((row) => rows.suggested[row] === Number(this.suggested.value));
    if (this.byState) tests.push((row) => choices.made.has(row) === (this.state.value === "done"));
    const wanted = this.search.value.trim().toLowerCase();
    if (wanted) tests.push((row) => this.texts[row].includes(wanted));
    return rows.index.map((_, row) => row).filter((row) => tests.every((test) => test(row)));
  }

  // A class that is not in the list leaves its filter open.
  set(given, suggested) {
    this.group.value = "";
    this.given.value = given;
    this.suggested.value = suggested;
    this.state.value = "all";
    this.search.value = "";
    for (const select of [this.given, this.suggested]) if (select.selectedIndex < 0) select.value = "";
  }
}
