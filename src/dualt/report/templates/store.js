// Choices are a log of [row, class]: the last word on a row counts, undo drops the last entry, and both survive a reload.
// What was known before, of an earlier batch, stands below the log and is not undone.
class Choices {
  constructor(key, nRows, known) {
    this.key = key;
    const whole = (number, end) => Number.isInteger(number) && number >= 0 && number < end;
    const saved = storage.read(key);
    this.log = (Array.isArray(saved) ? saved : []).filter((entry) =>
      Array.isArray(entry) && whole(entry[0], nRows) && whole(entry[1], page.names.length));
    this.known = new Map(known);
    this.made = new Map([...known, ...this.log]);
    this.kept = storage.write(key, this.log);
  }

  choose(row, code) {
    this.log.push([row, code]);
    this.made.set(row, code);
    this.kept = storage.write(this.key, this.log);
  }

  undo() {
    if (!this.log.length) return null;
    const [row] = this.log.pop();
    const before = this.log.findLast((entry) => entry[0] === row);
    if (before) this.made.set(row, before[1]);
    else if (this.known.has(row)) this.made.set(row, this.known.get(row));
    else this.made.delete(row);
    this.kept = storage.write(this.key, this.log);
    return row;
  }
}
