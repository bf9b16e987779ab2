// The system's choice of light or dark, unless the reader makes another.
const startTheme = (button) => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const current = () => root.dataset.theme ?? (system.matches ? "dark" : "light");
  const refresh = () => {
    button.textContent = current() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use ${button.textContent.toLowerCase()} colours`);
  };
  const saved = storage.read("dualt-theme");
  if (saved === "light" || saved === "dark") root.dataset.theme = saved;
  button.addEventListener("click", () => {
    root.dataset.theme = current() === "dark" ? "light" : "dark";
    storage.write("dualt-theme", root.dataset.theme);
    refresh();
  });
  system.addEventListener("change", refresh);
  button.hidden = false;
  refresh();
};
