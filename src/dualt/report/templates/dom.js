// Texts from the data only ever become text nodes and attributes of our own choosing, never markup.
const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
};

const percent = (share, decimals = 1) => `${(100 * share).toFixed(decimals)}%`;
const whole = (number) => number.toLocaleString("en");

const page = JSON.parse(document.getElementById("numbers").textContent);
const givenWord = page.given.split(" ")[0];  // "Given" of "Given label", or "Consensus"

const storage = {
  read(key) {
    try {
      return JSON.parse(localStorage.getItem(key));
    } catch {
      return null;
    }
  },
  // False where the browser keeps nothing: private windows, full or forbidden storage.
  write(key, value) {
    try {
      localStorage.setItem(key, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  },
};
