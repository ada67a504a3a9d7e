"use strict";
// Everything is put into the page as text: textContent, never innerHTML.
const data = JSON.parse(document.getElementById("data").textContent);
const report = data.report, analysis = data.analysis;
const found = new Map((analysis ? analysis.jobs : []).map(job => [job.index, job]));
const views = ["Jobs", "Memory", "Roofline", "Findings", "Shaders"];
const state = { view: 0, job: report.jobs.length ? report.jobs[0].index : null, filter: "", metric: "time", shader: 0 };

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

function bytes(n) {
  if (n === null || n === undefined) return "-";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) { n /= 1000; unit += 1; }
  return (unit ? n.toPrecision(3) : String(n)) + " " + units[unit];
}
function seconds(s) {
  if (s === null || s === undefined) return "-";
  return s >= 1 ? s.toFixed(2) + " s" : s >= 1e-3 ? (s * 1e3).toFixed(2) + " ms" : (s * 1e6).toFixed(1) + " µs";
}
const whole = n => n === null || n === undefined ? "-" : n.toLocaleString("en-US");
const sizes = list => list ? list.join("×") : "-";
const share = job => { const one = found.get(job.index); return one && one.lines ? one.used / (one.lines * analysis.line_bytes) : null; };
const title = job => job.name || job.kernel || job.type;
const metrics = {
  time: { label: "Time", of: job => job.seconds ? job.seconds.median : chainTime(job), text: seconds },
  instructions: { label: "Instructions", of: job => job.work ? job.work.instructions : null, text: whole },
  bytes: { label: "Bytes moved", of: job => job.work ? job.work.bytes_read + job.work.bytes_written : null, text: bytes },
};
// A chain's time belongs to its job where it has one only.
function chainTime(job) {
  const chain = report.chains.find(chain => chain.number === job.chain);
  return chain && chain.jobs.length === 1 && chain.seconds ? chain.seconds.median : null;
}
const jobs = () => {
  const words = state.filter.toLowerCase();
  return report.jobs.filter(job => [job.index, job.layer, job.name, job.kernel, job.type].join(" ").toLowerCase().includes(words));
};
// Accesses outside of tensors are no errors by themselves: buffers that have no name are not tensors.
const problems = job => { const one = found.get(job.index); return one ? one.races.length + one.uninit.length : 0; };

function choose(index) {
  state.job = index;
  document.querySelectorAll("tr.job").forEach(row => {
    const chosen = Number(row.dataset.job) === index;
    row.setAttribute("aria-selected", chosen);
    if (chosen) row.scrollIntoView({ block: "nearest" });
  });
  const side = document.getElementById("side");
  if (side) side.replaceChildren(...details(index));
}

function jobsView() {
  const metric = metrics[state.metric];
  const list = jobs();
  const most = Math.max(...list.map(job => metric.of(job) || 0), 0) || 1;
  const pick = make("select", { "aria-label": "What bars show", onchange: event => { state.metric = event.target.value; show(); } },
    ...Object.entries(metrics).map(([key, one]) => make("option", { value: key, text: one.label })));
  pick.value = state.metric;
  const filter = make("input", { type: "search", id: "filter", placeholder: "filter: layer, kernel, number", value: state.filter,
    "aria-label": "Filter", oninput: event => { state.filter = event.target.value; show(); document.getElementById("filter").focus(); } });
  const body = make("tbody");
  let layer;
  for (const job of list) {
    if (job.layer !== layer) {
      layer = job.layer;
      const of = list.filter(other => other.layer === layer).map(other => metric.of(other) || 0).reduce((a, b) => a + b, 0);
      body.append(make("tr", { class: "layer" }, make("td", { colspan: 8, text: (layer || "set-up and finish") + " · " + metric.text(of) })));
    }
    const value = metric.of(job), used = share(job), count = problems(job);
    const length = make("i");
    length.style.width = (100 * (value || 0) / most).toFixed(2) + "%";
    const bar = make("div", {}, make("span", { text: metric.text(value) }), make("div", {}, length));
    body.append(make("tr", { class: "job", tabindex: 0, "data-job": job.index, "aria-selected": job.index === state.job,
      onclick: () => choose(job.index), onfocus: () => choose(job.index) },
      make("td", { class: "number", text: job.index }),
      make("td", { class: "name", text: title(job), title: title(job) }),
      make("td", { class: "groups", text: sizes(job.groups) + " of " + sizes(job.local) }),
      make("td", { class: "bar" }, bar),
      make("td", { class: "number", "data-head": "instructions", "data-field": "instructions", text: job.work ? whole(job.work.instructions) : "-" }),
      make("td", { class: "number", "data-head": "read", "data-field": "read", title: job.work ? whole(job.work.bytes_read) : null, text: job.work ? bytes(job.work.bytes_read) : "-" }),
      make("td", { class: "number", "data-head": "written", "data-field": "written", title: job.work ? whole(job.work.bytes_written) : null, text: job.work ? bytes(job.work.bytes_written) : "-" }),
      make("td", { class: "number" + (count ? " bad" : ""), "data-head": analysis ? "lines used" : null, title: count ? "races or uninitialised reads" : null,
        text: (used === null ? "" : (100 * used).toFixed(0) + " %") + (count ? " !" : "") })));
  }
  const heads = ["#", "kernel", "groups of threads", metric.label, "instructions", "read", "written", analysis ? "lines used" : ""];
  const table = make("table", { class: "rows" }, make("thead", {}, make("tr", {}, ...heads.map((text, at) => make("th", { class: at === 0 || at > 3 ? "number" : "", text })))), body);
  const clock = report.measurement ? report.measurement.device + ", clock: " + report.measurement.clock : "not run";
  return [make("div", { class: "columns" },
    make("section", { class: "panel", "aria-label": "Jobs" }, make("div", { class: "tools" }, filter, pick, make("span", { class: "soft", text: clock })), table),
    make("aside", { class: "panel sticky", id: "side", "aria-live": "polite" }, ...details(state.job)))];
}

function pairs(rows) {
  const list = make("dl");
  for (const [name, value] of rows) if (value !== null && value !== undefined) list.append(make("dt", { text: name }), make("dd", { text: value }));
  return list;
}

// How hot a cell is, as a colour: nothing, then from pale to full.
function colour(style, name, level) {
  if (level === 0) return null;
  return { colour: style.getPropertyValue(name).trim(), alpha: 0.15 + 0.85 * level / 35 };
}
function paint(canvas, rows) {
  const style = getComputedStyle(document.documentElement);
  canvas.width = Math.max(...rows.map(row => row.levels.length), 1);
  canvas.height = rows.length;
  const context = canvas.getContext("2d");
  rows.forEach((row, y) => row.levels.forEach((level, x) => {
    const ink = colour(style, row.ink, level);
    if (!ink) return;
    context.globalAlpha = ink.alpha;
    context.fillStyle = ink.colour;
    context.fillRect(x, y, 1, 1);
  }));
  return canvas;
}
const levels = text => Array.from(text, digit => parseInt(digit, 36));

function details(index) {
  const job = report.jobs.find(job => job.index === index);
  if (!job) return [make("p", { class: "soft", text: "No job is chosen." })];
  const one = found.get(index);
  const work = job.work;
  const out = [make("h2", { text: "Job " + job.index + ": " + title(job) }), pairs([
    ["Layer", job.layer], ["Kernel", job.kernel], ["Shader", job.shader], ["Threads", job.global ? whole(job.global.reduce((a, b) => a * b, 1)) : null],
    ["Registers", job.registers], ["Barrier", job.barrier === null ? null : job.barrier ? "yes" : "no"],
    ["Group storage", job.group_storage_bytes ? bytes(job.group_storage_bytes) : null],
    ["FMA, ADD", work ? whole(work.fma) + ", " + whole(work.add) : null],
    ["Messages", work ? Object.entries(work.messages).map(([kind, count]) => whole(count) + " " + kind).join(", ") : null],
    ["Intensity", intensity(job) === null ? null : intensity(job).toFixed(3) + " instructions for each byte"],
    ["Lanes active", one && one.warps ? (one.lanes / one.warps).toFixed(2) + " of " + analysis.warp_lanes : null],
    ["Divergent", one && one.warps ? (100 * one.divergent / one.warps).toFixed(1) + " % of executions by warps" : null],
    ["Lines", one && one.lines ? whole(one.lines) + " touched, " + (100 * share(job)).toFixed(1) + " % of their bytes used, "
      + (one.lines / one.accesses).toFixed(2) + " for each access of a warp" : null],
  ])];
  if (!one) return out;
  for (const why of one.incomplete) out.push(make("p", { class: "bad", text: "Not complete: " + why }));
  if (one.heat.length) {
    out.push(make("h3", {}, "Heat: ", make("span", { class: "read", text: "reads above" }), ", ", make("span", { class: "write", text: "writes below" })));
    for (const area of one.heat) {
      const picture = paint(make("canvas", { role: "img", "aria-label": area.name + ": " + whole(area.read) + " bytes read, " + whole(area.written) + " written" }),
        [{ levels: levels(area.reads), ink: "--read" }, { levels: levels(area.writes), ink: "--write" }]);
      out.push(make("div", { class: "area" }, make("p", {}, make("span", { text: area.name + ", " + bytes(area.bytes) }),
        make("span", { class: "soft" }, make("span", { class: "read", text: bytes(area.read) + " read" }), ", ", make("span", { class: "write", text: bytes(area.written) + " written" }),
          ", a cell is " + bytes(area.cell_bytes))), picture));
    }
  }
  if (one.findings) out.push(make("p", { class: problems(job) ? "bad" : "soft", text: one.findings + " findings: see Findings" }));
  return out;
}

function memoryView() {
  if (!analysis) return [make("p", { class: "panel", text: "Nothing is known of memory: `gpureplay analyse REC -o FILE.html` looks into it." })];
  const areas = new Map();
  for (const job of report.jobs) {
    const one = found.get(job.index);
    for (const area of one ? one.heat : []) {
      const key = area.address + " " + area.name;
      if (!areas.has(key)) areas.set(key, { area, read: new Map(), written: new Map() });
      const row = areas.get(key);
      row.read.set(job.index, area.read);
      row.written.set(job.index, area.written);
    }
  }
  const level = (value, size) => value ? Math.max(1, Math.min(35, Math.round(2 * (Math.log2(value / size) + 8)))) : 0;
  const rows = [...areas.values()].sort((a, b) => a.area.address - b.area.address).map(row => {
    const of = kind => report.jobs.map(job => level(row[kind].get(job.index) || 0, row.area.bytes));
    const canvas = paint(make("canvas", { role: "img", "aria-label": row.area.name + " over the jobs", onclick: event => {
      const box = event.target.getBoundingClientRect();
      const at = Math.floor((event.clientX - box.left) / box.width * report.jobs.length);
      if (report.jobs[at]) { state.view = 0; state.job = report.jobs[at].index; show(); }
    } }), [{ levels: of("read"), ink: "--read" }, { levels: of("written"), ink: "--write" }]);
    return make("tr", {}, make("td", { class: "name", text: row.area.name, title: row.area.name }), make("td", { class: "number", text: bytes(row.area.bytes) }),
      make("td", { class: "number soft", text: "0x" + row.area.address.toString(16) }), make("td", { class: "map" }, canvas));
  });
  return [make("section", { class: "panel" }, make("h2", {}, "Memory over time, a column for each job: ",
    make("span", { class: "read", text: "reads above" }), ", ", make("span", { class: "write", text: "writes below" })),
  make("table", { class: "rows" }, make("thead", {}, make("tr", {}, ...["area", "size", "address", "jobs " + (report.jobs.length ? report.jobs[0].index + " to " + report.jobs[report.jobs.length - 1].index : "")]
    .map((text, at) => make("th", { class: at === 1 || at === 2 ? "number" : "", text })))), make("tbody", {}, ...rows)))];
}

function intensity(job) {
  const moved = job.work ? job.work.bytes_read + job.work.bytes_written : 0;
  return moved ? job.work.instructions / moved : null;
}
function draw(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}
function rooflineView() {
  const points = report.jobs.filter(job => intensity(job)).map(job => ({ job, x: intensity(job), size: job.work.instructions }));
  if (!points.length) return [make("p", { class: "panel", text: "No job has work that was counted." })];
  const peak = data.peaks.instructions, speed = data.peaks.bytes, roof = peak && speed;
  const attainable = x => roof ? Math.min(peak, x * speed) : x;
  const ten = Math.log10, low = Math.floor(ten(Math.min(...points.map(p => p.x)))), knee = roof ? peak / speed : 1;
  const high = Math.ceil(ten(Math.max(...points.map(p => p.x), knee))) || 1;
  const bottom = Math.floor(ten(attainable(10 ** low))), top = Math.ceil(ten(attainable(10 ** high)) + 0.01);
  // Drawn as wide as the window is, so that text keeps its size.
  const wide = Math.min(960, document.getElementById("main").clientWidth - 70);
  const [left, right, up, down] = [roof ? 50 : 20, wide - 20, 20, 460];
  const x = value => left + (ten(value) - low) / (high - low) * (right - left);
  const y = value => down - (ten(value) - bottom) / (top - bottom) * (down - up);
  const picture = draw("svg", { viewBox: "0 0 " + wide + " 510", role: "img", "aria-label": "Roofline" });
  for (let n = low; n <= high; n++) picture.append(draw("line", { class: "axis", x1: x(10 ** n), x2: x(10 ** n), y1: up, y2: down }),
    draw("text", { x: x(10 ** n), y: down + 18, "text-anchor": "middle" }, "10^" + n));
  if (roof) {
    for (let n = bottom; n <= top; n++) picture.append(draw("line", { class: "axis", x1: left, x2: right, y1: y(10 ** n), y2: y(10 ** n) }),
      draw("text", { x: left - 8, y: y(10 ** n) + 4, "text-anchor": "end" }, "10^" + n));
    picture.append(draw("polyline", { class: "roof", points: [10 ** low, knee, 10 ** high].map(v => x(v) + "," + y(attainable(v))).join(" ") }));
  }
  const most = Math.max(...points.map(point => point.size));
  points.forEach((point, n) => {
    // Without peaks nothing is known but the intensity: the height then only keeps the circles apart.
    const height = roof ? y(attainable(point.x)) : down - 20 - (n % 20) * 20;
    const circle = draw("circle", { cx: x(point.x), cy: height, r: 3 + 11 * Math.sqrt(point.size / most), tabindex: 0 });
    circle.append(draw("title", {}, "job " + point.job.index + " " + title(point.job) + ": " + point.x.toFixed(3)));
    circle.addEventListener("click", () => { state.view = 0; state.job = point.job.index; show(); });
    picture.append(circle);
  });
  picture.append(draw("text", { x: (left + right) / 2, y: 500, "text-anchor": "middle" }, "instructions per byte moved"));
  const text = roof ? "Given peaks: " + whole(peak) + " instructions and " + whole(speed) + " bytes per second. Each job is drawn at what it could attain."
    : "Without peaks (--peak-instructions, --peak-bytes) there is no roof. Intensities are exact.";
  return [make("section", { class: "panel" }, make("h2", { text: "Roofline" }), make("p", { class: "soft", text }), picture)];
}

function findingsView() {
  if (!analysis) return [make("p", { class: "panel", text: "Nothing was looked for: `gpureplay analyse REC -o FILE.html` does." })];
  const out = [make("h2", { text: "Findings" })];
  if (analysis.ended_early) out.push(make("p", { class: "bad", text: "The run ended early: " + analysis.ended_early }));
  out.push(pairs(analysis.verdicts.map(one => [one.what, one.verdict])));
  const list = (name, heads, of, row) => {
    const names = ["job", ...heads];
    const rows = analysis.jobs.flatMap(job => of(job).map(one => make("tr", {}, ...[job.index, ...row(one)].map((text, at) => make("td", { "data-head": names[at], text })))));
    if (rows.length) out.push(make("h3", { text: name }), make("table", { class: "rows" },
      make("thead", {}, make("tr", {}, ...names.map(text => make("th", { text })))), make("tbody", {}, ...rows)));
  };
  const hex = n => "0x" + n.toString(16), dash = text => text || "?";
  list("Races", ["kind", "at", "times", "first", "second"], job => job.races, one => [one.kind, one.at, whole(one.times),
    hex(one.clauses[0]) + " " + dash(one.instructions[0]), hex(one.clauses[1]) + " " + dash(one.instructions[1])]);
  list("Uninitialised reads", ["bytes", "first at", "instruction"], job => job.uninit, one => [whole(one.bytes), one.at, dash(one.instruction)]);
  list("Accesses outside of tensors", ["bytes", "", "first at", "instruction"], job => job.outside, one => [whole(one.bytes), one.writes ? "written" : "read", one.at, dash(one.instruction)]);
  const left = analysis.jobs.map(job => job.findings - job.races.length - job.uninit.length - job.outside.length).reduce((a, b) => a + b, 0);
  if (left) out.push(make("p", { class: "soft", text: whole(left) + " more findings are not listed here; gpureplay analyse --json lists all." }));
  return [make("section", { class: "panel" }, ...out)];
}

function shadersView() {
  if (!data.shaders.length) return [make("p", { class: "panel", text: "No shader decodes." })];
  const pick = make("select", { "aria-label": "Shader", id: "shader", onchange: event => { state.shader = Number(event.target.value); show(); document.getElementById("shader").focus(); } },
    ...data.shaders.map((shader, at) => make("option", { value: at, text: [...shader.names, shader.hash].join(", ") + " · jobs " + shader.jobs.join(" ") })));
  pick.value = state.shader;
  const shader = data.shaders[state.shader] || data.shaders[0];
  const text = make("pre", { tabindex: 0 });
  for (const clause of shader.clauses) {
    for (const note of clause.notes) text.append(make("span", { class: /^(race:|reads |writes )/.test(note) ? "note bad" : "note", text: "# " + note + "\n" }));
    text.append(clause.text, "\n");
  }
  return [make("section", { class: "panel" }, make("div", { class: "tools" }, pick), text)];
}

const makers = [jobsView, memoryView, rooflineView, findingsView, shadersView];
function show() {
  document.getElementById("tabs").replaceChildren(...views.map((name, at) => make("button", { type: "button", role: "tab", "aria-selected": at === state.view,
    text: name, onclick: () => { state.view = at; show(); } })));
  document.getElementById("main").replaceChildren(...makers[state.view]());
}
function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function theme() {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  show();
}
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const typing = event.target.matches("input, select");
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing) return;
  if (event.key >= "1" && event.key <= String(views.length)) { state.view = Number(event.key) - 1; show(); }
  else if (event.key === "t") theme();
  else if (event.key === "/") { state.view = 0; show(); document.getElementById("filter").focus(); event.preventDefault(); }
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const rows = [...document.querySelectorAll("tr.job")];
    if (!rows.length) return;
    const at = rows.findIndex(row => Number(row.dataset.job) === state.job);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)))];
    next.focus();
    event.preventDefault();
  }
});
document.getElementById("theme").addEventListener("click", theme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
addEventListener("resize", () => { if (views[state.view] === "Roofline") show(); });
document.title = "gpureplay: " + report.recording;
document.getElementById("title").textContent = report.recording;
document.getElementById("subtitle").textContent = [report.gpu, report.jobs.length + " jobs", report.selection, "sha256 " + report.recording_sha256.slice(0, 16)].filter(Boolean).join(" · ");
if (location.hash) {
  const [view, job] = location.hash.slice(1).split(",");
  const at = views.findIndex(name => name.toLowerCase() === view);
  if (at >= 0) state.view = at;
  if (report.jobs.some(one => one.index === Number(job))) state.job = Number(job);
}
show();
