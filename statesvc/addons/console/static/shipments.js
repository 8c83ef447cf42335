"use strict";
// The slider says which time a step stands for, and shows it when it is released; without this script, its button does.
document.addEventListener("DOMContentLoaded", () => {
  const slider = document.getElementById("seen");
  if (!slider) return;
  const times = slider.dataset.times.split(" "), shown = slider.form.querySelector("output");
  slider.addEventListener("input", () => { shown.textContent = new Date(times[slider.value - 1]).toISOString().slice(0, 19).replace("T", " ") + " UTC"; });
  slider.addEventListener("change", () => slider.form.requestSubmit());
});
