// A short digest of texts, to know an example again (cyrb53: 53 bits, not for security).
const digest = (...texts) => {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (const text of texts) {
    for (let i = 0; i <= text.length; i += 1) {
      const unit = i < text.length ? text.charCodeAt(i) : 0x10000;
      a = Math.imul(a ^ unit, 2654435761);
      b = Math.imul(b ^ unit, 1597334677);
    }
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return (4294967296 * (2097151 & b) + (a >>> 0)).toString(36);
};

// An example is known by its id and its content; where it lacks one, by what it has among these very labels.
const exampleKeys = (rows) => {
  const times = new Map();
  return rows.index.map((index, row) => {
    const [id, content] = [rows.ids?.[row], rows.previews?.[row]];
    const known = id && content ? [id, content] : [document.body.dataset.digest, id || `row ${index}`, content ?? ""];
    const key = digest(...known);
    times.set(key, (times.get(key) ?? 0) + 1);
    return times.get(key) > 1 ? `${key}:${times.get(key)}` : key;
  });
};

// Choices are a log of [row, class]: the last word on a row counts, undo drops the last entry, and both survive a reload.
// Stored are [example, class], in this browser and for this file, so that a page written anew knows them still; what an
// earlier review decided stands below the log and is not undone.
class Choices {
  constructor(rows) {
    this.key = `dualt-review:${digest(location.pathname, ...page.names)}:${rows.key}`;
    this.keys = exampleKeys(rows);
    this.rowOf = new Map(this.keys.map((key, row) => [key, row]));
    this.known = new Map(rows.known);
    this.log = this.stored().filter(([key]) => this.rowOf.has(key)).map(([key, code]) => [this.rowOf.get(key), code]);
    this.made = new Map([...this.known, ...this.log]);
    this.save();
  }

  stored() {
    const saved = storage.read(this.key);
    const isClass = (code) => Number.isInteger(code) && code >= 0 && code < page.names.length;
    return (Array.isArray(saved) ? saved : []).filter((entry) =>
      Array.isArray(entry) && typeof entry[0] === "string" && isClass(entry[1]));
  }

  // Choices on examples that are not on this page stay where they are.
  save() {
    const others = this.stored().filter(([key]) => !this.rowOf.has(key)).slice(-20_000);
    this.kept = storage.write(this.key, [...others, ...this.log.map(([row, code]) => [this.keys[row], code])]);
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
