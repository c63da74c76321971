// Zoom, pan and hover for the timeline. Without it the picture says the same; tooltips come from <title>.
"use strict";
(() => {
  const box = document.querySelector(".timeline");
  const plot = box && box.querySelector(".plot");
  if (!plot) return;
  const outer = plot.ownerSVGElement;
  const start = Number(box.dataset.start), end = Number(box.dataset.end);
  const height = plot.viewBox.baseVal.height;
  const ticks = [...outer.querySelectorAll(".tick")], pins = [...outer.querySelectorAll(".pin")];
  const labels = [...outer.querySelectorAll(".on-mark")];
  const readout = box.querySelector(".readout");
  const PARTS = 8; // as many as the picture's own axis is cut into at most
  while (ticks.length && ticks.length <= PARTS) {
    const more = ticks[0].cloneNode(true);
    more.style.display = "none";
    ticks[ticks.length - 1].after(more);
    ticks.push(more);
  }
  const PIN = 1.9; // percent of the width that a number takes
  const LEAST = 0.01; // percent of the window that fills the picture at most
  let from = 0, width = 100;

  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const seconds = (percent, decimals) => ((start + (end - start) * percent / 100) / 1e9).toFixed(decimals) + " s";

  function roundStep(span, parts) {
    const raw = span / parts, magnitude = 10 ** Math.floor(Math.log10(raw));
    return magnitude * [1, 2, 5, 10].find((m) => magnitude * m >= raw * (1 - 1e-9));
  }

  function drawTicks() {
    const low = start + (end - start) * from / 100, span = (end - start) * width / 100;
    const step = roundStep(span, PARTS);
    const decimals = clamp(9 - Math.floor(Math.log10(step) + 1e-9), 0, 9);
    let value = Math.ceil(low / step - 1e-9) * step;
    for (const tick of ticks) {
      const x = 100 * (value - low) / span, line = tick.querySelector("line"), text = tick.querySelector("text");
      tick.style.display = x > 100.001 ? "none" : "";
      line.setAttribute("x1", x + "%");
      line.setAttribute("x2", x + "%");
      text.setAttribute("x", x + "%");
      text.setAttribute("text-anchor", x < 4 ? "start" : x > 96 ? "end" : "middle");
      text.textContent = (value / 1e9).toFixed(decimals) + " s";
      value += step;
    }
  }

  function draw() {
    plot.setAttribute("viewBox", `${from} 0 ${width} ${height}`);
    let free = 0; // pins come in the order of time; one moves right where another stands
    for (const pin of pins) {
      const x = 100 * (Number(pin.dataset.x) - from) / width;
      const shown = x >= 0 && x <= 100;
      pin.style.display = shown ? "" : "none";
      if (!shown) continue;
      pin.setAttribute("x", clamp(Math.max(x, free), 0, 98) + "%");
      free = Math.max(x, free) + PIN;
    }
    for (const label of labels) {
      const left = Math.max(0, 100 * (Number(label.dataset.start) - from) / width);
      const right = Math.min(100, 100 * (Number(label.dataset.end) - from) / width);
      label.style.display = right - left < 10 ? "none" : "";
      label.setAttribute("x", (left + right) / 2 + "%");
    }
    if (ticks.length) drawTicks();
  }

  function view(newFrom, newWidth) {
    width = clamp(newWidth, LEAST, 100);
    from = clamp(newFrom, 0, 100 - width);
    draw();
  }

  const zoom = (factor, at) => view(from + width * at * (1 - factor), width * factor);
  const place = (event) => {
    const area = outer.getBoundingClientRect();
    return clamp((event.clientX - area.left) / area.width, 0, 1);
  };

  const tools = document.createElement("div");
  tools.className = "tools";
  for (const [label, title, act] of [
    ["+", "Zoom in", () => zoom(0.5, 0.5)],
    ["\u2212", "Zoom out", () => zoom(2, 0.5)],
    ["\u25c2", "Earlier", () => view(from - width / 4, width)],
    ["\u25b8", "Later", () => view(from + width / 4, width)],
    ["Whole window", "Show the whole window", () => view(0, 100)],
  ]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.title = title;
    button.setAttribute("aria-label", title);
    button.addEventListener("click", act);
    tools.append(button);
  }
  const hint = document.createElement("span");
  hint.className = "wide";
  hint.textContent = "Drag to move, Ctrl and wheel to zoom";
  tools.append(hint);
  box.prepend(tools);
  box.classList.add("live");
  readout.hidden = false;

  outer.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls otherwise
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, place(event));
  }, { passive: false });

  let grabbed = null;
  outer.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button === 0 && !event.target.closest("a")) {
      grabbed = { x: event.clientX, from };
      box.classList.add("drag");
      event.preventDefault();
    }
  });
  window.addEventListener("pointermove", (event) => {
    if (grabbed) view(grabbed.from - (event.clientX - grabbed.x) * width / outer.getBoundingClientRect().width, width);
  });
  window.addEventListener("pointerup", () => {
    grabbed = null;
    box.classList.remove("drag");
  });
  outer.addEventListener("pointermove", (event) => {
    const mark = event.target.closest(".plot rect");
    const title = mark && mark.querySelector("title");
    readout.textContent = seconds(from + width * place(event), 6) + (title ? " \u00b7 " + title.textContent : "");
  });
  outer.addEventListener("pointerleave", () => { readout.textContent = ""; });
})();
