// `listed(given, true)` tells how many labels to review a cell has, `open` shows them.
const drawHeatmap = (host, tip, listed, open) => {
  const { classes, value, low, high, others } = page.matrix;
  const fine = classes.length > 12;
  const upright = classes.some((code) => briefly(code).length > (fine ? 2 : 4));
  const place = new Map();
  const wrong = value.flatMap((row, i) => row.filter((_, j) => i !== j));
  const largest = Math.max(0.001, ...wrong);

  const level = `${Number((100 * page.level).toFixed(2))}%`;
  const onList = (row, column) => (column === classes.length ? 0 : listed(classes[column], classes[row]));
  const shareOf = (row, column) => (column === classes.length ? others[row] : value[row][column]);

  // What a cell says: the classes, the value, and the interval if there is one.
  const words = (row, column) => {
    const aside = column === classes.length;
    const given = aside ? "any class not shown" : shown(classes[column]);
    const said = [`True ${shown(classes[row])}, ${givenWord.toLowerCase()} ${given}`, percent(shareOf(row, column), 2)];
    if (low && !aside) said.push(`${level} interval ${percent(low[row][column], 2)} to ${percent(high[row][column], 2)}`);
    if (onList(row, column)) said.push(`${whole(onList(row, column))} to review: click`);
    return said;
  };

  const cell = (row, column) => {
    const share = shareOf(row, column);
    // Wrong labels get the whole scale of colour, right ones stay grey; the root tells 1 % from 3 % beside 30 %.
    const neutral = row === column || column === classes.length;
    const tone = neutral ? 0.8 * share : Math.sqrt(share / largest);
    // The spoken name has the number as it is seen.
    const text = fine || share < 0.0005 ? "" : (100 * share).toFixed(1);
    const [pair, exact, ...more] = words(row, column);
    const spoken = [pair, text ? `${text} percent` : exact, ...more].join(", ");
    const node = el("td", { role: "gridcell", tabindex: "-1", "aria-label": spoken }, text);
    node.className = neutral ? "neutral" : "";
    node.classList.toggle("leads", onList(row, column) > 0);
    node.style.setProperty("--v", tone.toFixed(3));
    place.set(node, [row, column]);
    return node;
  };

  const columns = classes.length + (others ? 1 : 0);
  const cells = classes.map((_, row) => Array.from({ length: columns }, (_, column) => cell(row, column)));
  const head = el(
    "tr",
    { role: "row" },
    el("th", { scope: "col" }, el("span", { class: "unseen" }, "true class")),
    ...classes.map((code) => el("th", { scope: "col" }, brief(code))),
    others ? el("th", { scope: "col" }, el("bdi", {}, "others")) : "",
  );
  const body = cells.map((row, i) =>
    el("tr", { role: "row" }, el("th", { scope: "row" }, brief(classes[i])), ...row));
  const table = el(
    "table",
    { role: "grid", class: ["heat", fine && "fine", upright && "upright"].filter(Boolean).join(" "), "aria-label": "Transition matrix" },
    el(
      "caption",
      {},
      el("span", {}, `true class ↓  ${page.given.toLowerCase()} →${fine ? "" : "  percent"}`),
      el("span", { class: "scale", "aria-hidden": "true" }, "wrong 0", el("i"), percent(largest)),
    ),
    el("thead", {}, head),
    el("tbody", {}, ...body),
  );

  const show = (node) => {
    tip.textContent = words(...place.get(node)).join("\n");
    tip.hidden = false;
    const box = node.getBoundingClientRect();
    const left = Math.min(Math.max(8, box.left), innerWidth - tip.offsetWidth - 8);
    const below = box.bottom + 8 + tip.offsetHeight < innerHeight;
    tip.style.left = `${left}px`;
    tip.style.top = `${below ? box.bottom + 8 : box.top - tip.offsetHeight - 8}px`;
  };
  const hide = () => { tip.hidden = true; };

  let current = cells[0][0];
  current.tabIndex = 0;
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const target = (event, row, column) => {
    if (event.key === "Home") return [event.ctrlKey ? 0 : row, 0];
    if (event.key === "End") return [event.ctrlKey ? classes.length - 1 : row, columns - 1];
    const move = moves[event.key];
    return move && [row + move[0], column + move[1]];
  };
  const follow = (node) => {
    const [row, column] = place.get(node) ?? [0, classes.length];
    if (onList(row, column)) open(classes[column], classes[row]);
  };
  table.addEventListener("click", ({ target: node }) => follow(node));
  table.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return follow(event.target);
    }
    const to = place.has(event.target) && target(event, ...place.get(event.target));
    if (!to) return;
    event.preventDefault();
    cells[to[0]]?.[to[1]]?.focus();
  });
  table.addEventListener("focusin", ({ target: node }) => {
    current.tabIndex = -1;
    current = node;
    current.tabIndex = 0;
    show(node);
  });
  table.addEventListener("focusout", hide);
  table.addEventListener("pointerover", ({ target: node }) => (place.has(node) ? show(node) : hide()));
  table.addEventListener("pointerleave", hide);
  host.append(table);
};
