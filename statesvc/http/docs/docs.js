"use strict";
// the `type` of a problem is the address of its row
const named = location.hash && document.getElementById(location.hash.slice(1));
if (named) {
  named.closest("details").open = true;
  named.scrollIntoView();
}
const sans = "system-ui, sans-serif";
Redoc.init("/openapi.json", {
  expandResponses: "200,201",
  hideHostname: true,
  nativeScrollbars: true,
  sortRequiredPropsFirst: true,
  theme: {
    colors: { primary: { main: "#0b5cad" } },
    typography: { fontFamily: sans, fontSize: "16px", headings: { fontFamily: sans }, code: { fontFamily: "ui-monospace, monospace" } }
  }
}, document.getElementById("calls"));
