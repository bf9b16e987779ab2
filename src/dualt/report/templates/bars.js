const drawBars = (host) => {
  const { value, mostly, share } = page.rates;
  const largest = value.reduce((most, rate) => Math.max(most, rate), 0);
  const end = [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75].find((end) => largest <= end) ?? 1;
  const few = 30;
  const all = value.map((_, code) => code);
  const worst = value.length <= few ? all : [...all].sort((a, b) => value[b] - value[a]).slice(0, few);

  const bar = (code) => {
    const node = el("div", { class: "bar", "aria-hidden": "true" }, el("div", { class: "fill" }));
    node.style.setProperty("--v", value[code] / end);
    return node;
  };
  const row = (code) => el(
    "tr",
    {},
    el("th", { scope: "row" }, brief(code)),
    el("td", { class: "strip" }, bar(code)),
    el("td", { class: "number" }, percent(value[code])),
    el("td", { class: "soft wide" }, ...(share[code] < 0.0005 ? ["–"] : [`${percent(share[code])} as `, brief(mostly[code])])),
  );
  const titles = ["Class", `0 to ${percent(end, 0)}`, "Noise rate", "Most often given"];
  const body = el("tbody", {}, ...worst.map(row));
  const heads = titles.map((title, i) =>
    el("th", { scope: "col", class: i === 2 ? "number" : i > 2 ? "wide" : null }, title));
  host.append(el("table", { class: "bars" }, el("thead", {}, el("tr", {}, ...heads)), body));
  if (worst.length < all.length) {
    const more = el("button", { type: "button" }, `Show all ${whole(all.length)} classes`);
    more.addEventListener("click", () => {
      body.replaceChildren(...all.map(row));
      more.remove();
    });
    host.append(el("p", { class: "meta" }, `The ${few} noisiest classes. `, more));
  }
};
