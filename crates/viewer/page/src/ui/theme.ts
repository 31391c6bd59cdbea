// Color scheme: that of the system, or the one that the user has chosen.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const NAME = "gguf-view-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/** Increases when the color scheme changes, so that canvases are redrawn. */
export const scheme = signal(0);
export const theme = signal<Theme>(stored());
apply();
system.addEventListener("change", () => {
  scheme.value += 1;
});

function stored(): Theme {
  try {
    const found = localStorage.getItem(NAME);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system";
  }
}

function apply(): void {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

export function setTheme(to: Theme): void {
  theme.value = to;
  apply();
  scheme.value += 1;
  try {
    localStorage.setItem(NAME, to);
  } catch {
    // Without storage, the choice lasts as long as the page.
  }
}

export function isDark(): boolean {
  return theme.value === "system" ? system.matches : theme.value === "dark";
}
