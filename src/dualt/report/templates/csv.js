// The rule of dualt/io/tables.py: an apostrophe in front of whatever a spreadsheet would run as a formula.
const FORMULA = /^[' ]*[=+\-@\t\r\n＝＋－＠]/;
const NUMBER = /^[+-]?[0-9]+(\.[0-9]+)?$/;
const guardCell = (text) => (FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text);
const quoteCell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const toCsv = (rows) => rows.map((cells) => `${cells.map(quoteCell).join(",")}\r\n`).join("");

const download = (filename, text) => {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = el("a", { href: url, download: filename, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
};
