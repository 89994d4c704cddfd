"use strict";
(() => {
  const data = JSON.parse(document.getElementById("fairlead-data").textContent);
  const canvas = document.getElementById("canvas");
  const tip = document.getElementById("tip");
  const range = document.getElementById("range");
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const lanes = data.lanes.map((lane) => ({
    name: lane.name,
    gil: lane.gil,
    group: lane.group,
    held: new Uint16Array(bytes(lane.held)),
    waited: new Uint16Array(bytes(lane.waited)),
    holds: new Uint32Array(bytes(lane.holds)),
    waits: new Uint32Array(bytes(lane.waits)),
  }));
  const ROW = 24, BAR = 16, TOP = 26;
  const view = { from: 0, to: data.end };
  let width = 0, left = 0;

  const time = (ns) => {
    for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]]) {
      if (Math.abs(ns) >= size) return `${Number((ns / size).toPrecision(4))} ${unit}`;
    }
    return `${Math.round(ns)} ns`;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const x = (ns) => left + ((ns - view.from) / (view.to - view.from)) * (width - left);
  const at = (px) => view.from + ((px - left) / (width - left)) * (view.to - view.from);

  // position of the first interval that ends after t
  const after = (pairs, t) => {
    let low = 0, high = pairs.length / 2;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[2 * middle + 1] * data.unit > t) high = middle; else low = middle + 1;
    }
    return low;
  };

  const shares = (context, bins, fill, y, height, strength) => {
    context.fillStyle = fill;
    for (let px = left; px < width; px++) {
      const first = Math.floor(at(px) / data.bin);
      const last = Math.max(first, Math.ceil(at(px + 1) / data.bin) - 1);
      let sum = 0;
      for (let bin = first; bin <= last; bin++) sum += bins[bin] || 0;
      if (!sum) continue;
      context.globalAlpha = strength * Math.min(1, sum / 65535 / (last - first + 1));
      context.fillRect(px, y, 1, height);
    }
    context.globalAlpha = 1;
  };

  const singly = (context, pairs, fill, y, height) => {
    context.fillStyle = fill;
    for (let i = after(pairs, view.from); i < pairs.length / 2; i++) {
      const start = pairs[2 * i] * data.unit, end = pairs[2 * i + 1] * data.unit;
      if (start > view.to) break;
      const begin = Math.max(left, x(start));
      context.fillRect(begin, y, Math.max(0.6, Math.min(width, x(end)) - begin), height);
    }
  };

  const draw = () => {
    const ratio = window.devicePixelRatio || 1;
    width = canvas.clientWidth;
    const height = TOP + lanes.length * ROW + 6;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    const ink = colour("--ink"), soft = colour("--soft"), rule = colour("--rule");
    const longest = Math.max(40, ...lanes.map((lane) => context.measureText(lane.name).width));
    left = Math.round(Math.min(longest + 16, width * 0.3));
    const rough = (view.to - view.from) / Math.max(2, (width - left) / 110);
    const magnitude = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * magnitude).find((s) => s >= rough);
    context.textBaseline = "middle";
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
      context.fillStyle = rule;
      context.fillRect(Math.round(x(t)), TOP - 6, 1, height - TOP);
      const label = time(Math.round(t));
      if (x(t) + context.measureText(label).width < width) {
        context.fillStyle = soft;
        context.fillText(label, x(t) + 2, 11);
      }
    }
    const coarse = (view.to - view.from) / (width - left) >= data.bin / 2;
    const hold = colour("--hold"), waiting = colour("--waiting");
    lanes.forEach((lane, row) => {
      const y = TOP + row * ROW;
      context.fillStyle = ink;
      context.save();
      context.beginPath();
      context.rect(0, y, left - 6, ROW);
      context.clip();
      context.fillText(lane.name, 8, y + BAR / 2);
      context.restore();
      // a hold fills its lane, a wait the upper half of it: where both share a pixel, both are seen
      if (coarse) {
        shares(context, lane.held, hold, y + BAR / 2, BAR / 2, 1);
        shares(context, lane.waited, waiting, y, BAR / 2, 1);
      } else {
        if (data.shortest) {
          shares(context, lane.held, hold, y + BAR / 2, BAR / 2, 0.4);
          shares(context, lane.waited, waiting, y, BAR / 2, 0.4);
        }
        singly(context, lane.holds, hold, y + BAR / 2, BAR / 2);
        singly(context, lane.waits, waiting, y, BAR / 2);
      }
      const parted = row + 1 < lanes.length && lanes[row + 1].group !== lane.group;
      context.fillStyle = parted ? soft : rule;
      context.fillRect(0, y + BAR + 3, width, parted ? 2 : 1);
    });
    range.textContent = `${time(view.from)} to ${time(view.to)} (${time(view.to - view.from)})`;
    document.documentElement.dataset.drawn = "yes";
  };

  const show = (from, to) => {
    const span = Math.min(data.end, Math.max(1000, to - from));
    view.from = Math.min(Math.max(0, from), data.end - span);
    view.to = view.from + span;
    draw();
  };
  const zoom = (factor, centre = (view.from + view.to) / 2) => {
    show(centre - (centre - view.from) * factor, centre + (view.to - centre) * factor);
  };
  const move = (share) => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));
  const commands = {
    in: () => zoom(0.4), out: () => zoom(2.5), left: () => move(-0.4), right: () => move(0.4), all: () => show(0, data.end),
  };
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => commands[button.dataset.zoom]());
  }
  document.querySelector(".tools").hidden = false;
  const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all" };
  canvas.addEventListener("keydown", (event) => {
    if (keys[event.key]) { commands[keys[event.key]](); event.preventDefault(); }
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    zoom(Math.exp(event.deltaY / 300), at(event.offsetX));
    event.preventDefault();
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoom(0.25, at(event.offsetX)));

  const interval = (pairs, t) => {
    const i = after(pairs, t);
    const start = pairs[2 * i] * data.unit, end = pairs[2 * i + 1] * data.unit;
    return i < pairs.length / 2 && start <= t ? { start, end } : null;
  };
  const describe = (event) => {
    const lane = lanes[Math.floor((event.offsetY - TOP) / ROW)];
    if (!lane || event.offsetX < left) return "";
    const t = at(event.offsetX);
    const wait = interval(lane.waits, t);
    if (wait) {
      const holder = lanes.find((other) => other !== lane && other.gil === lane.gil && interval(other.holds, t));
      return `${time(t)}: ${lane.name} waits, ${time(wait.end - wait.start)} in all; ${holder ? `${holder.name} holds the GIL` : "no thread is seen to hold it"}`;
    }
    const hold = interval(lane.holds, t);
    return hold ? `${time(t)}: ${lane.name} holds the GIL for ${time(hold.end - hold.start)}` : `${time(t)}: ${lane.name}`;
  };
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.offsetX, ...view }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const moved = ((drag.x - event.offsetX) / (width - left)) * (drag.to - drag.from);
      show(drag.from + moved, drag.to + moved);
    }
    tip.textContent = describe(event);
  });
  document.getElementById("detail").textContent =
    "Drag to move, double-click, the buttons or Ctrl + wheel to zoom." +
    (data.shortest ? ` There are too many intervals to draw each: those under ${time(data.shortest)} are shown as shades.` : "");
  new ResizeObserver(draw).observe(canvas.parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
