"use strict";
// the `type` of a problem is the address of its row
const named = location.hash && document.getElementById(location.hash.slice(1));
if (named) {
  named.closest("details").open = true;
  named.scrollIntoView();
}
const calls = document.getElementById("calls");
// Redoc's selects have no names; it draws them anew when something is chosen
new MutationObserver(() => {
  for (const select of calls.querySelectorAll("select:not([aria-label])")) {
    select.setAttribute("aria-label", "Media type or example");
  }
}).observe(calls, { childList: true, subtree: true });
const sans = "system-ui, sans-serif";
Redoc.init("/openapi.json", {
  expandResponses: "200,201",
  hideHostname: true,
  nativeScrollbars: true,
  sortRequiredPropsFirst: true,
  theme: {
    // Redoc's own shades have too little contrast
    colors: {
      primary: { main: "#0b5cad", light: "#0b5cad" },
      warning: { contrastText: "#263238" },
      responses: {
        success: { tabTextColor: "#7ddc87" },
        error: { tabTextColor: "#ff9d96" },
        redirect: { color: "#8a5300", tabTextColor: "#ffcc66" },
        info: { tabTextColor: "#9cc9ff" }
      }
    },
    typography: {
      fontFamily: sans,
      fontSize: "16px",
      headings: { fontFamily: sans },
      links: { textDecoration: "underline" },
      code: { fontFamily: "ui-monospace, monospace", color: "#a01d1d" }
    }
  }
}, calls);
