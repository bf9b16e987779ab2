startTheme(document.getElementById("theme"));
drawHeatmap(document.getElementById("heatmap"), document.getElementById("tip"));
drawBars(document.getElementById("bars"));
if (page.methods.length) drawCompared(document.getElementById("compared"));

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
for (const node of document.querySelectorAll("button[data-given]")) {
  const [review] = reviews.values();
  node.addEventListener("click", () => review?.showPair(node.dataset.given, node.dataset.suggested));
}
