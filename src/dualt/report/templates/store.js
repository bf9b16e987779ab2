// An example is known by its id, or by its row number where ids are missing or repeated.
const exampleKeys = (rows) => {
  const unique = rows.ids && rows.ids.every(Boolean) && new Set(rows.ids).size === rows.ids.length;
  return rows.index.map((index, row) => (unique ? `id ${rows.ids[row]}` : `row ${index}`));
};

// Choices are a log of [row, class]: the last entry for a row counts, undo drops the last entry, and both survive a reload.
// Stored are [example, old label, new label], in this browser and for this file: a page that is written again finds them,
// where the label is still the old one. Decisions of an earlier review stand below the log and are not undone.
class Choices {
  constructor(rows) {
    this.key = `dualt-review:${location.pathname}:${rows.key}`;
    this.rows = rows;
    this.keys = exampleKeys(rows);
    this.rowOf = new Map(this.keys.map((key, row) => [key, row]));
    this.known = new Map(rows.known);
    const codes = new Map(page.names.map((text, code) => [text, code]));
    this.log = this.stored().filter((entry) => this.isHere(entry) && codes.has(entry[2]))
      .map(([key, , text]) => [this.rowOf.get(key), codes.get(text)]);
    this.made = new Map([...this.known, ...this.log]);
    this.save();
  }

  stored() {
    const saved = storage.read(this.key);
    return (Array.isArray(saved) ? saved : []).filter((entry) =>
      Array.isArray(entry) && entry.length === 3 && entry.every((text) => typeof text === "string"));
  }

  isHere([key, old]) {
    return this.rowOf.has(key) && page.names[this.rows.given[this.rowOf.get(key)]] === old;
  }

  // Choices on examples that are not on this page stay where they are.
  save() {
    const others = this.stored().filter((entry) => !this.isHere(entry)).slice(-20_000);
    const own = this.log.map(([row, code]) => [this.keys[row], page.names[this.rows.given[row]], page.names[code]]);
    this.kept = storage.write(this.key, [...others, ...own]);
  }

  choose(row, code) {
    this.log.push([row, code]);
    this.made.set(row, code);
    this.save();
  }

  undo() {
    if (!this.log.length) return null;
    const [row] = this.log.pop();
    const before = this.log.findLast((entry) => entry[0] === row)?.[1] ?? this.known.get(row);
    if (before === undefined) this.made.delete(row);
    else this.made.set(row, before);
    this.save();
    return row;
  }
}
