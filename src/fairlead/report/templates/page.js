(function () {
  "use strict";
  // eight marks, drawn by plotly in the plots and by the page in its tables: colour is never the only sign
  var SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star"];
  var CONFIG = { displayModeBar: false, responsive: true, showTips: false, displaylogo: false };
  var panels = JSON.parse(document.getElementById("fairlead-data").textContent);
  var scales = {};
  var hidden = {};

  function css(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  function tracesOf(panel) {
    var traces = [];
    panel.references.forEach(function (reference) {
      var grey = css("reference");
      traces.push({ x: reference.line.x, y: reference.line.y, mode: "lines", hoverinfo: "skip",
        line: { color: grey, width: 1.5, dash: "dot" } });
      traces.push({ x: reference.points.x, y: reference.points.y, text: reference.points.text, mode: "markers",
        name: "reference " + reference.name, hovertemplate: "%{text}", marker: { color: grey, size: 6, symbol: "circle-open" } });
    });
    panel.curves.forEach(function (curve) {
      if (hidden[panel.id] && hidden[panel.id][curve.index]) { return; }
      var colour = css("c" + curve.index % 8);
      var symbol = SYMBOLS[curve.index % 8];
      traces.push({ x: curve.raw.x, y: curve.raw.y, mode: "markers", hoverinfo: "skip",
        marker: { color: colour, size: 5, opacity: 0.45 } });
      traces.push({ x: curve.fit.x, y: curve.fit.y, mode: "lines", hoverinfo: "skip", line: { color: colour, width: 2 } });
      if (curve.modes.x.length) {
        traces.push({ x: curve.modes.x, y: curve.modes.y, mode: "markers", hoverinfo: "skip",
          marker: { color: colour, size: 11, symbol: "line-ew-open", line: { width: 2.5, color: colour } } });
      }
      traces.push({ x: curve.median.x, y: curve.median.y, text: curve.median.text, 
        mode: curve.fit.x.length ? "markers" : "lines+markers", line: { color: colour, width: 1, dash: "dash" },
        name: curve.name, hovertemplate: "%{text}",
        marker: { color: colour, size: 8, symbol: symbol },
        error_y: { type: "data", symmetric: false, array: curve.median.up, arrayminus: curve.median.down,
          color: colour, thickness: 1.2, width: 3 } });
    });
    return traces;
  }

  function axis(kind, range, title) {
    return { type: kind, range: range, title: { text: title, standoff: 8 }, gridcolor: css("grid"), zeroline: false,
      linecolor: css("rule"), tickcolor: css("rule"), ticks: "outside", ticklen: 4, automargin: true, fixedrange: true };
  }

  function layoutOf(panel) {
    var kind = scales[panel.id] || "log";
    var x = axis(kind, panel.view[kind].x, "number of " + panel.size);
    var y = axis(kind, panel.view[kind].y, "time");
    x.tickvals = panel.sizes;
    x.ticktext = panel.sizes.map(String);
    x.showgrid = false;
    x.minor = { ticks: "" };
    y.tickvals = panel.view[kind].ticks;
    y.ticktext = panel.view[kind].labels;
    y.minor = { ticks: "" };
    // paper is narrower than most windows, and nothing may wait for a resize when the page is printed
    var width = matchMedia("print").matches ? { width: 640 } : { autosize: true };
    return Object.assign(width, { xaxis: x, yaxis: y, showlegend: false, hovermode: "closest", hoverdistance: 30,
      margin: { l: 56, r: 12, t: 12, b: 44 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: css("soft") },
      hoverlabel: { bgcolor: css("sheet"), bordercolor: css("rule"), font: { color: css("ink"), size: 13 }, namelength: -1 } });
  }

  function draw(panel) {
    Plotly.react(panel.id, tracesOf(panel), layoutOf(panel), CONFIG);
  }

  function redraw(id) {
    panels.filter(function (panel) { return panel.id === id; }).forEach(draw);
  }

  document.querySelectorAll("fieldset.scale").forEach(function (field) {
    field.hidden = false;
    field.addEventListener("change", function (event) {
      scales[field.dataset.plot] = event.target.value;
      redraw(field.dataset.plot);
    });
  });
  document.querySelectorAll("button.show").forEach(function (button) {
    button.disabled = false;
    button.title = "Show or hide its curve";
    button.addEventListener("click", function () {
      var shown = button.getAttribute("aria-pressed") !== "true";
      var id = button.dataset.plot;
      hidden[id] = hidden[id] || {};
      hidden[id][button.dataset.curve] = !shown;
      button.setAttribute("aria-pressed", String(shown));
      redraw(id);
    });
  });
  ["(prefers-color-scheme: dark)", "print"].forEach(function (query) {
    matchMedia(query).addEventListener("change", function () { if (window.Plotly) { panels.forEach(draw); } });
  });
  // the library stands in the page compressed; it runs as a script of the page, by its hash
  function unpack(packed) {
    var bytes = Uint8Array.from(atob(packed), function (letter) { return letter.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  unpack(document.getElementById("fairlead-library").textContent).then(function (library) {
    var script = document.createElement("script");
    script.textContent = library;
    document.head.appendChild(script);
    document.documentElement.classList.add("drawn");
    panels.forEach(draw);
    document.documentElement.classList.add("done");
  });
})();
