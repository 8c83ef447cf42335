"use strict";
// Asks the page for a refresh every few seconds, unless nobody sees it, someone works in the part that would be replaced, or updates are paused.
const EVERY_MS = 5000, PAUSED = "statesvc-paused";
const isPaused = () => sessionStorage.getItem(PAUSED) === "1";
const isInUse = live => live.contains(document.activeElement) || live.querySelector("details[open]") || (!document.getSelection().isCollapsed && live.contains(document.getSelection().anchorNode));

function refresh() {
  const live = document.getElementById("live");
  if (live && document.visibilityState === "visible" && !isPaused() && !isInUse(live)) htmx.trigger(document.body, "refresh");
}

function showLocalTimes() {
  for (const time of document.querySelectorAll("time:not([title])")) time.title = new Date(time.dateTime).toLocaleString(undefined, { timeZoneName: "short" });
}

function showPause(button) {
  button.setAttribute("aria-pressed", String(isPaused()));
  button.textContent = isPaused() ? "Resume updates" : "Pause updates";
}

function findWithSlash(event) {
  const field = document.getElementById("find"), typing = document.activeElement.matches("input, select, textarea");
  if (!field || typing || event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  field.focus();
  field.select();
}

// The slider says which time a step stands for, and shows it when it is released; without this script, its button does.
function showSteps(slider) {
  const times = slider.dataset.times.split(" "), shown = slider.form.querySelector("output");
  slider.addEventListener("input", () => { shown.textContent = new Date(times[slider.value - 1]).toISOString().slice(0, 19).replace("T", " ") + " UTC"; });
  slider.addEventListener("change", () => slider.form.requestSubmit());
}

document.addEventListener("DOMContentLoaded", () => {
  showLocalTimes();
  document.addEventListener("htmx:afterSettle", showLocalTimes);
  document.addEventListener("keydown", findWithSlash);
  const slider = document.getElementById("seen"), button = document.getElementById("pause");
  if (slider) showSteps(slider);
  if (!button) return;
  button.hidden = false;
  showPause(button);
  button.addEventListener("click", () => {
    sessionStorage.setItem(PAUSED, isPaused() ? "0" : "1");
    showPause(button);
  });
  setInterval(refresh, EVERY_MS);
});
