// Light or dark, before anything is painted: a plain script, because modules run later.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("marginwise.theme");
    } catch {
      return null; // storage is blocked: the theme lasts until the page is left
    }
  };
  const apply = (name) => {
    root.dataset.theme = name;
    document.dispatchEvent(new Event("themechange"));
  };

  apply(chosen() ?? (system.matches ? "dark" : "light"));
  system.addEventListener("change", () => {
    if (!chosen()) apply(system.matches ? "dark" : "light");
  });

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => {
      const other = root.dataset.theme === "dark" ? "light" : "dark";
      button.setAttribute("aria-label", `Use the ${other} theme`);
      button.title = `Use the ${other} theme`;
    };
    label();
    document.addEventListener("themechange", label);
    button.addEventListener("click", () => {
      const name = root.dataset.theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("marginwise.theme", name);
      } catch {
        // see above
      }
      apply(name);
    });
  });
})();
