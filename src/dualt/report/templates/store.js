// An example is known by its id, or by its row number where ids are missing or repeated.
const exampleKeys = (rows) => {
  const unique = rows.ids && rows.ids.every(Boolean) && new Set(rows.ids).size === rows.ids.length;
  return rows.index.map((index, row) => (unique ? `id ${rows.ids[row]}` : `row ${index}`));
};

// Choices are a log of [row, class, step]: the last entry for a row counts, undo drops the entries of the last step, and
// both survive a reload. Stored are [example, old label, new label, step], in this browser and for this file: a page that
// is written again finds them, where the label is still the old one. Decisions of an earlier review stand below the log and are not undone.
class Choices {
  constructor(rows) {
    this.key = `dualt-review:${location.pathname}:${rows.key}`;
    this.rows = rows;
    this.keys = exampleKeys(rows);
    this.rowOf = new Map(this.keys.map((key, row) => [key, row]));
    this.known = new Map(rows.known);
    const codes = new Map(page.names.map((text, code) => [text, code]));
    this.log = this.stored().filter((entry) => this.isHere(entry) && codes.has(entry[2]))
      .map(([key, , text, step]) => [this.rowOf.get(key), codes.get(text), Number(step)]);
    this.made = new Map([...this.known, ...this.log.map(([row, code]) => [row, code])]);
    this.save();
  }

  stored() {
    const saved = storage.read(this.key);
    return (Array.isArray(saved) ? saved : []).filter((entry) =>
      Array.isArray(entry) && entry.length === 4 && entry.every((text) => typeof text === "string"));
  }

  isHere([key, old]) {
    return this.rowOf.has(key) && page.names[this.rows.given[this.rowOf.get(key)]] === old;
  }

  // Choices on examples that are not on this page stay where they are.
  save() {
    const others = this.stored().filter((entry) => !this.isHere(entry)).slice(-20_000);
    const own = this.log.map(([row, code, step]) =>
      [this.keys[row], page.names[this.rows.given[row]], page.names[code], String(step)]);
    this.kept = storage.write(this.key, [...others, ...own]);
  }

  // Takes [row, class] of one example or of several: one step, which is undone as one.
  choose(decisions) {
    const step = (this.log.at(-1)?.[2] ?? 0) + 1;
    for (const [row, code] of decisions) {
      this.log.push([row, code, step]);
      this.made.set(row, code);
    }
    this.save();
  }

  // Returns the rows of the step that was undone, in the order of the decisions.
  undo() {
    const step = this.log.at(-1)?.[2];
    const start = this.log.findIndex((entry) => entry[2] === step);
    const undone = start < 0 ? [] : this.log.splice(start).map(([row]) => row);
    const before = new Map([...this.known, ...this.log.map(([row, code]) => [row, code])]);
    for (const row of undone) {
      if (before.has(row)) this.made.set(row, before.get(row));
      else this.made.delete(row);
    }
    this.save();
    return undone;
  }
}
