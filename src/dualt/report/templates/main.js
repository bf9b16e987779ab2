startTheme(document.getElementById("theme"));
drawBars(document.getElementById("bars"));

const reviews = new Map();
for (const rows of page.lists) {
  const host = document.querySelector(`[data-list="${rows.key}"]`);
  if (!host) continue;
  const review = new Review(host, rows);
  reviews.set(rows.key, review);
  for (const link of document.querySelectorAll(`a[href="#${rows.key}"]`)) {
    link.addEventListener("click", () => review.focus());
  }
}

// A confusion leads to its labels on the list of suspects, from the matrix and from the table beside it.
const suspects = reviews.get("suspects");
const pairs = new Map();
suspects?.rows.given.forEach((given, row) => {
  const pair = `${given} ${suspects.rows.suggested[row]}`;
  pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
});
const listed = (given, actual) => pairs.get(`${given} ${actual}`) ?? 0;
drawHeatmap(document.getElementById("heatmap"), document.getElementById("tip"), listed, (given, actual) =>
  suspects.showPair(given, actual));
for (const node of document.querySelectorAll("button[data-given]")) {
  node.addEventListener("click", () => suspects?.showPair(node.dataset.given, node.dataset.suggested));
}
