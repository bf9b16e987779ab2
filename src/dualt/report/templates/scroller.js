// A list box that holds only the rows in sight, and a few around them.
class Scroller {
  constructor(box, draw) {
    this.box = box;
    this.draw = draw;
    this.rows = box.appendChild(el("div", { class: "rows", role: "presentation" }));
    this.nodes = new Map();
    this.count = 0;
    this.printed = 0;
    const later = () => requestAnimationFrame(() => this.refresh());
    box.addEventListener("scroll", later, { passive: true });
    new ResizeObserver(later).observe(box);
    addEventListener("beforeprint", () => this.print(60));
    addEventListener("afterprint", () => this.print(0));
  }

  get height() {
    return Number.parseFloat(getComputedStyle(this.box).getPropertyValue("--row"));
  }

  reset(count) {
    this.count = count;
    this.nodes.clear();
    this.rows.replaceChildren();
    this.rows.style.height = `${count * this.height}px`;
    this.refresh();
  }

  // On paper there is no scrolling: the first rows stand for all.
  print(rows) {
    this.printed = rows;
    this.refresh();
  }

  refresh() {
    const { box, height, printed } = this;
    const first = printed ? 0 : Math.max(0, Math.floor(box.scrollTop / height) - 4);
    const last = Math.min(this.count, printed || Math.ceil((box.scrollTop + box.clientHeight) / height) + 4);
    for (const [position, node] of this.nodes) {
      if (position < first || position >= last) {
        node.remove();
        this.nodes.delete(position);
      }
    }
    // From the end, so that the node to stand before is always there.
    let after = null;
    for (let position = last - 1; position >= first; position -= 1) {
      after = this.nodes.get(position) ?? this.place(position, after);
    }
  }

  place(position, after) {
    const node = this.draw(position);
    node.style.transform = `translateY(${position * this.height}px)`;
    this.nodes.set(position, node);
    return this.rows.insertBefore(node, after);
  }

  redraw(position) {
    this.nodes.get(position)?.remove();
    this.nodes.delete(position);
    this.refresh();
  }

  show(position) {
    const { box, height } = this;
    const top = position * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
    this.refresh();
  }
}
